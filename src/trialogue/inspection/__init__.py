"""Measurements of what a pretrained language model has learned, each compared with random weights."""
