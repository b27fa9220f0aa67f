"""Measurement of the order of interactions between tokens that a model has learned.

The measurement uses the losses of the model on clones: copies of a text that keep interactions up to some order.
"""
