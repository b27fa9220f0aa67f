"""Verifiers: grammars, functions of tokens or text, trained probes, a random control, and their combinations.

Structured distributions are exact verifiers of their own: `trialogue.data.Dyck`.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
