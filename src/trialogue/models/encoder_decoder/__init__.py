"""Encoder-decoders: a bidirectional decoder that refines a whole target, and its autoregressive twin."""
