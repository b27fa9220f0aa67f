"""Number of model calls that constrained generation needs: lower bounds, exact costs and knapsack problems."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
