"""Verifiers: grammars, functions of tokens or text, trained probes, a random baseline, and combinations of them.

Some data distributions are also exact verifiers, for example `trialogue.data.Dyck`.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
