"""Measures of the structure that a model has learned."""
