"""How many next-token laws an attention-only transformer can hold, and weights that hold them.

The statements of the document on memorization in attention-only transformers, made executable.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
