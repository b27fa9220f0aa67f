"""Parallel text: pairs of a sentence and its translation, their split, and a vocabulary of both languages."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
