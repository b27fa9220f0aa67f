"""Measurements of the structure that a pretrained model has learned, each compared with random weights."""
