"""The ledger: published claims, the results that confront them, and the verdicts.

`load_rows("study")` gives the rows of a finished result as a DataFrame.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
