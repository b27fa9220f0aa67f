"""Structured distributions with exact probabilities and samples, and text corpora."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
