"""Encoder-decoder transformers for translation.

A causal decoder generates a target token by token. A bidirectional decoder refines a complete target.
"""
