"""What one layer of attention learns of topics: the optima of section 2.1 of the thesis in closed form.

Matrices are numbered as in the thesis: row and column 0 are [MASK], row and column i the word i - 1 of `TopicModel`.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
