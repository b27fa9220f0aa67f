"""Samplers of autoregressive oracles on the tree of prefixes, their contract, and the engine that runs them."""
