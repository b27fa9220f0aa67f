"""Closed-form optima of one attention layer trained on a topic model (thesis, section 2.1).

A topic model generates documents whose words belong to a few topics. Matrices are numbered as in the thesis. Row and
column 0 are the mask token [MASK], and row and column i are word i - 1 of `TopicModel`.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
