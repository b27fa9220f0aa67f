"""Measure the order of the interactions that a model has learned by its losses on clones of a text."""
