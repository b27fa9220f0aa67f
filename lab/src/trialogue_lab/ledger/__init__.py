"""Published claims, the results that test them, and the verdicts on the claims.

`load_rows("study")` returns the rows of a finished result as a DataFrame.
"""

from trialogue.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
