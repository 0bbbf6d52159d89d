"""Stores that candidates come from: memory, entity graph, documents, artifacts."""
