"""Samplers of masked models, which reveal a sequence in a few parallel passes."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
