"""Claims from publications, the stored results that test them, and a verdict on each claim.

`load_rows("study")` returns the measurements of a finished result as a DataFrame.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
