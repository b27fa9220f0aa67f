"""How sequences are drawn from what was learned: samplers, chains, verifiers, truncation, and exact distributions."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
