"""Parallel text: pairs of a sentence and its translation, their split, and a vocabulary of both languages."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
