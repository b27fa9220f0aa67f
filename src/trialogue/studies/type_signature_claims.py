"""Claims of the study `type-signature` about costs that are counted and networks that are trained; and all claims."""

from collections.abc import Callable

import numpy as np
from pandas import DataFrame, Series

from trialogue.ledger import Claim
from trialogue.ledger.claims import Direction
from trialogue.ledger.replication import NOT_PRINTED
from trialogue.studies.type_signature_law_claims import FACTORING, LAW_CLAIMS, OURS, WAYS
from trialogue.studies.type_signature_pilot import COSTS, TRAININGS
from trialogue.studies.type_signature_rows import (
    FACTORS_FIRST,
    HIDDEN,
    PRODUCT_FIRST,
    RHO,
    STREAMS,
    TESTS,
    TRIAL_DIVISION,
    costs,
    networks,
)


def _cost(
    identity: str, statement: str, published: str, routine: str, threshold: float, direction: Direction
) -> Claim:
    def slopes(rows: DataFrame) -> "Series[float]":
        """Decimal logarithm of the cost per further digit, by least squares, of every seed."""
        table = costs(rows, routine)
        return Series([float(np.polyfit(table.columns, np.log10(row), 1)[0]) for row in table.to_numpy()])

    return COSTS.claim(identity, statement, FACTORING, published, slopes, threshold, direction)


def _trained(
    identity: str,
    statement: str,
    estimate: Callable[[DataFrame], "Series[float]"],
    threshold: float,
    direction: Direction,
) -> Claim:
    source = f"{FACTORING}, {WAYS} (networks {OURS})"
    return TRAININGS.claim(identity, statement, source, NOT_PRINTED, estimate, threshold, direction)


def _difference(first: str, second: str, column: str, digits: int) -> Callable[[DataFrame], "Series[float]"]:
    """A number of one stream's networks minus that of another's, by seed."""

    def difference(rows: DataFrame) -> "Series[float]":
        values: Series[float] = networks(rows, first, digits)[column] - networks(rows, second, digits)[column]
        return values

    return difference


def _least(column: str, digits: int) -> Callable[[DataFrame], "Series[float]"]:
    def least(rows: DataFrame) -> "Series[float]":
        values: Series[float] = networks(rows, STREAMS[0], digits)[column]
        for stream in STREAMS[1:]:
            values = values.combine(networks(rows, stream, digits)[column], min)
        return values

    return least


CLAIMS = (
    *LAW_CLAIMS,
    _cost(
        "trial-division-is-exponential",
        "Product first, a digit of a factor costs more than 10^0.9 times as many trial divisions per digit of n.",
        "hard",
        TRIAL_DIVISION,
        0.9,
        "above",
    ),
    _cost(
        "rho-is-exponential",
        "By Pollard's rho it costs more than 10^0.4 times as many iterations per digit of n.",
        "hard",
        RHO,
        0.4,
        "above",
    ),
    _cost(
        "factors-first-is-cheap",
        "Factors first, a digit of a prime costs less than 10^0.25 times as many primality tests per digit of n.",
        "poly(n)",
        TESTS,
        0.25,
        "below",
    ),
    _trained(
        "networks-can-learn-small-tuples",
        "With one-digit primes more than 90 % of the tuples emitted are valid in every order (least share).",
        _least("valid", 1),
        0.9,
        "above",
    ),
    _trained(
        "networks-do-better-factors-first",
        "With two-digit primes the share of valid tuples is higher by more than 0.2 factors first.",
        _difference(FACTORS_FIRST, PRODUCT_FIRST, "valid", 2),
        0.2,
        "above",
    ),
    _trained(
        "networks-do-better-with-a-hidden-stream",
        "With two-digit primes a hidden stream raises the share of valid tuples, product first, by more than 0.2.",
        _difference(HIDDEN, PRODUCT_FIRST, "valid", 2),
        0.2,
        "above",
    ),
    _trained(
        "a-hidden-stream-is-no-worse-than-the-easy-order",
        "With two-digit primes the hidden stream loses less than 0.05 against factors first (share of valid tuples).",
        _difference(HIDDEN, FACTORS_FIRST, "valid", 2),
        -0.05,
        "above",
    ),
    _trained(
        "three-digits-are-closer-factors-first",
        "With three-digit primes the law learned is closer in KL factors first (difference in nats, below 0).",
        _difference(FACTORS_FIRST, PRODUCT_FIRST, "excess", 3),
        0.0,
        "below",
    ),
    _trained(
        "three-digits-are-closer-with-a-hidden-stream",
        "With three-digit primes the law learned is closer in KL with a hidden stream (difference in nats, below 0).",
        _difference(HIDDEN, PRODUCT_FIRST, "excess", 3),
        0.0,
        "below",
    ),
)
