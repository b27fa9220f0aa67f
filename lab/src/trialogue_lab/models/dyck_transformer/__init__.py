"""Transformers as the thesis studies them on Dyck languages, trained or built by hand to be exact.

`DyckTransformer` is the network of equations 2.42 to 2.46, with a minimal first layer where its embeddings are of types
and depths. `balanced_transformer` (Theorem 2.2.1) and `uniform_attention_transformer` (Corollary 2.2.1) are networks
whose answers are the exact next-bracket distribution at any length.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
