"""The ledger: published claims, the results that confront them, and the verdicts.

`load_rows("study")` gives the rows of a finished result as a DataFrame.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
