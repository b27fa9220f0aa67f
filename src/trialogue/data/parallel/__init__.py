"""Parallel texts for translation: sentence pairs, training and test splits, and a joint subword vocabulary."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
