"""Train, sample and evaluate models of token sequences, and compare them with exact distributions.

`data` has distributions with known ground truth, `training` trains networks on them, and `samplers` draws sequences
from models. `inspection` measures trained models, and `extend` has base classes for your own extensions.
"""

from trialogue.lazy_exports import lazy_exports

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
