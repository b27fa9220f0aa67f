"""The value-guided walk (thesis section 3.3.1, Algorithm 2) on trees small enough to list: what it samples, and when.

Closed forms come from the walk's conductances, the same numbers from the walk's own `step`: one holds the other.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
