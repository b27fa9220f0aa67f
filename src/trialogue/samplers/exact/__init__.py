"""Exact output distributions and costs of samplers, and transition matrices of chains, computed without sampling."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
