"""Transformers on balanced brackets (Dyck languages) as in the thesis, trained or constructed to be exact.

`DyckTransformer` is a small transformer that predicts the next bracket. `balanced_transformer` and
`uniform_attention_transformer` set its weights so that its predictions are exact for strings of any length.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
