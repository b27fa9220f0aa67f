"""Parallel texts, their splits, and a joint subword vocabulary of both languages."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
