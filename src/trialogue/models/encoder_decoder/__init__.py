"""Encoder-decoders with a bidirectional decoder, which refines a target, or with a causal decoder."""
