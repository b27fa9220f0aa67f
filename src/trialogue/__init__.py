"""trialogue: when do conditionals add up to a good joint distribution?

`data` holds distributions whose truth is known, `training` what networks learn from them, `inference` how
sequences are drawn from what was learned; `studies` confront the three and the `ledger` keeps the verdicts.
`extend` has the base classes for what you add to them.
"""

from trialogue.lazy_exports import lazy_exports

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
