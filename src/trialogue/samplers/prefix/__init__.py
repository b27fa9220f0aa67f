"""Samplers on the tree of prefixes: the contract, the engine, and every sampler of an autoregressive oracle."""
