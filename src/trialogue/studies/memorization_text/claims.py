"""Claims of the study."""

CLAIMS: tuple[()] = ()
NUMBERS = {}
