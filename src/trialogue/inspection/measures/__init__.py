"""Measures of what a checkpoint has learned."""
