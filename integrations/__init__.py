"""Adapters for agent frameworks and model providers."""
