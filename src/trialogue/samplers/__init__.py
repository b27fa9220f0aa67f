"""How sequences are drawn from what was learned: walks, chains, verifiers, truncation, and exact laws."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
