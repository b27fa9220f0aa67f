"""Samplers of autoregressive models, Markov chains on sequences, truncation, and exact distributions."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
