"""Storage of next-token distributions in attention-only transformers: largest number, and weights.

The package implements the statements of the document on memorization in attention-only transformers.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
