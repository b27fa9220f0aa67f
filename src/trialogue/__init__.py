"""trialogue: when do conditionals add up to a good joint distribution?

`data` holds distributions whose truth is known, `training` what networks learn from them, `inference` how
sequences are drawn from what was learned; `studies` confront the three and the `ledger` keeps the verdicts.
"""

__version__ = "0.1.0"
