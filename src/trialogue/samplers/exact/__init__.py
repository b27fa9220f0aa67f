"""Exact distributions: what a sampler does, computed instead of sampled, from the very `step` that users run.

Of samplers the distribution of the output and the expected cost, of chains the transition matrix and whether it is
ergodic.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
