"""How sequences are drawn from what was learned: samplers, chains, verifiers, truncation, and exact distributions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
