"""Transformers on balanced brackets (Dyck languages) as in the thesis, trained or constructed to be exact.

`DyckTransformer` is the network of equations 2.42 to 2.46. Its first layer is called minimal if its output encodes only
the type and the depth of a bracket. `balanced_transformer` (Theorem 2.2.1) and `uniform_attention_transformer`
(Corollary 2.2.1) return the exact next-bracket distribution at any length.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
