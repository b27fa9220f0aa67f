"""Exact analysis of the value-guided random walk (thesis, section 3.3.1, Algorithm 2) on small trees.

The walk moves up and down the tree of prefixes of a next-token model. It prefers prefixes of high value and outputs a
leaf (a complete sequence). Closed forms treat the edges as electrical conductances, and transition matrices use the
`step` method of the sampler. The two computations verify each other.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
