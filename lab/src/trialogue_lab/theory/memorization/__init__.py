"""How many next-token laws an attention-only transformer can hold, and weights that hold them.

The statements of the document on memorization in attention-only transformers, made executable.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
