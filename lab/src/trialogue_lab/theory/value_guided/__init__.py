"""The value-guided walk (thesis section 3.3.1, Algorithm 2) on trees small enough to list: what it samples, and when.

Closed forms come from the walk's conductances, the same numbers from the walk's own `step`: one holds the other.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
