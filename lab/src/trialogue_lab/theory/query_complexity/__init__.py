"""What constrained generation costs in calls of an oracle: lower bounds, exact costs of any task, and knapsacks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
