"""Decoders of the Llama family that are read without transformers, whose import takes longer than reading a model."""
