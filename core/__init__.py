"""The compiler: pure functions from a request and its candidates to a bundle or a failure."""
