"""What constrained generation costs in calls of an oracle: lower bounds, exact costs of any task, and knapsacks."""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
