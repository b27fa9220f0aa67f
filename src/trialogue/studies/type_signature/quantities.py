"""What the claims, tables and figures of the study `type-signature` read from its rows."""

from pandas import DataFrame

from trialogue.studies.rows import kind

PRODUCT_FIRST = "product first"
FACTORS_FIRST = "factors first"
HIDDEN = "product first, hidden p and q"
STREAMS = (PRODUCT_FIRST, FACTORS_FIRST, HIDDEN)

TRIAL_DIVISION = "trial division"
RHO = "Pollard's rho"
TESTS = "primality tests"
ROUTINES = (TRIAL_DIVISION, RHO, TESTS)
"""What is counted per digit of the second number of the tuple: product first by two routines, and factors first."""


def networks(rows: DataFrame, stream: str, digits: int) -> DataFrame:
    """The trained networks of one stream and size, by seed."""
    chosen = kind(rows, "network")
    return chosen[(chosen.stream == stream) & (chosen.digits == digits)].set_index("seed").sort_index()


def network_digits(rows: DataFrame) -> list[int]:
    """Sizes of primes on which networks were trained."""
    return sorted(kind(rows, "network").digits.astype(int).unique().tolist())


def costs(rows: DataFrame, routine: str) -> DataFrame:
    """Mean cost of one digit (seeds, digits) by one routine."""
    chosen = kind(rows, "cost")
    chosen = chosen[chosen.routine == routine]
    return chosen.pivot_table(index="seed", columns="digits", values="cost")
