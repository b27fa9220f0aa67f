"""Verifiers: grammars, functions of tokens or text, trained probes, a random control, and their combinations.

Structured distributions are exact verifiers of their own: `trialogue.data.Dyck`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
