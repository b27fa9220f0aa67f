"""Verifiers, which evaluate generated sequences: grammars, functions, trained probes, and combinations.

Some data distributions are also exact verifiers, for example `trialogue.data.Dyck`.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
