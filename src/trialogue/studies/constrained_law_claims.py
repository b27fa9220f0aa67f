"""Claims of the study `constrained-law`.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on other seeds.
"""

import math
from collections.abc import Callable

from pandas import DataFrame, Series

from trialogue.ledger import Claim
from trialogue.ledger.claims import Direction
from trialogue.ledger.replication import Replication

REPLICATIONS = 8
PILOT_SEEDS = (100, 101, 102, 103, 104)
PILOT: dict[str, tuple[float, ...]] = {
    "masked-is-biased-regex": (0.751, 0.6161, 0.8814, 0.4134, 0.5005),
    "masked-is-biased-json": (0.1444, 0.2245, 0.1313, 0.1098, 0.2506),
    "weights-repair": (-0.2138, -0.2, -0.2425, -0.1209, -0.1763),
    "weights-are-cheaper-than-rejection": (2.5497, 2.5025, 2.5258, 2.763, 3.2386),
    "resampling-on-the-way-adds-little": (-0.0031, 0.0438, 0.0056, 0.0348, 0.0276),
    "value-guided-is-closer": (-0.3933, -0.3694, -0.4592, -0.2294, -0.31),
    "backtracking-is-no-closer": (0.2859, 0.156, 0.4179, 0.5301, 0.2974),
    "masked-as-computed": (0.0217, 0.0528, -0.0102, 0.0106, -0.0182),
}
"""Estimates of every claim from the pilot, one per seed of `PILOT_SEEDS`."""


def of_rule(
    rows: DataFrame, rule: str, column: str, *, kind: str | None = None, size: int | None = None
) -> "Series[float]":
    """Mean of a column over the questions of each seed, for one decoding rule."""
    chosen = rows[rows.rule == rule]
    if kind is not None:
        chosen = chosen[chosen.kind == kind]
    if size is not None:
        chosen = chosen[chosen["size"] == size]
    return chosen.groupby("seed")[column].mean()


def _largest(rows: DataFrame) -> int:
    return int(rows["size"].max())


def _particles(rows: DataFrame) -> int:
    return int(rows[rows.rule == "smc"]["size"].max())


def _gain_over_rejection(rows: DataFrame) -> "Series[float]":
    """log10 of effective samples per query, of weighted masked samples over rejection: mean over a seed's questions."""
    by_part = rows.groupby("part")
    rejection = by_part.accepted_mass.max() / rows[rows.rule == "no rule"].groupby("part").queries.first()
    masked = (
        rows[(rows.rule == "masked, weighted") & (rows["size"] == 1)].groupby("part").ess_per_query.first()
    )
    return (masked / rejection).map(math.log10).groupby(by_part.seed.first()).mean()


_PROMPT_SETS = Replication(unit="prompt set", count=REPLICATIONS, pilot_seeds=PILOT_SEEDS, pilot=PILOT)


def _claim(
    identity: str,
    statement: str,
    published: str,
    estimate: Callable[[DataFrame], "Series[float]"],
    threshold: float,
    direction: Direction,
    margin: float = 0.0,
) -> Claim:
    source = "Thesis section 3.1"
    return _PROMPT_SETS.claim(identity, statement, source, published, estimate, threshold, direction, margin)


CLAIMS = (
    _claim(
        "masked-is-biased-regex",
        "Under a regular expression masked decoding is more than 0.1 (total variation) from the restricted law.",
        "Proposition 3.1.2: it differs",
        lambda rows: of_rule(rows, "masked, weighted", "tv", kind="regex", size=1),
        0.1,
        "above",
    ),
    _claim(
        "masked-is-biased-json",
        "Under a JSON schema masked decoding is more than 0.05 from the restricted law.",
        "Proposition 3.1.2: it differs",
        lambda rows: of_rule(rows, "masked, weighted", "tv", kind="json-schema", size=1),
        0.05,
        "above",
    ),
    _claim(
        "weights-repair",
        "An output drawn by weight among the largest number of masked samples is less than half as far.",
        "not in the thesis",
        lambda rows: (
            of_rule(rows, "masked, weighted", "tv", size=_largest(rows))
            - of_rule(rows, "masked, weighted", "tv", size=1) / 2
        ),
        0.0,
        "below",
    ),
    _claim(
        "weights-are-cheaper-than-rejection",
        "Masked samples with their weights are worth at least ten times as many effective samples per query as "
        "rejection gives (geometric mean over questions).",
        "not in the thesis",
        _gain_over_rejection,
        1.0,
        "above",
    ),
    _claim(
        "resampling-on-the-way-adds-little",
        "Sequential Monte Carlo is not closer, by more than 0.02, than drawing by weight among as many masked samples "
        "(16; counts of 1,000 outputs each).",
        "not in the thesis",
        lambda rows: (
            of_rule(rows, "smc", "tv", size=_particles(rows))
            - of_rule(rows, "masked, weighted", "drawn_tv", size=_particles(rows))
        ),
        -0.02,
        "above",
    ),
    _claim(
        "value-guided-is-closer",
        "The first leaf of the value-guided walk is closer to the restricted law than masked decoding.",
        "Theorem on Algorithm 2: exact only where the values are exact",
        lambda rows: (
            of_rule(rows, "value-guided", "tv", size=1) - of_rule(rows, "masked, weighted", "tv", size=1)
        ),
        0.0,
        "below",
    ),
    _claim(
        "backtracking-is-no-closer",
        "Backtracking with the exact verifier (Q = B = 4) is not closer to the restricted law than masked decoding "
        "(counts of equally many outputs).",
        "not in the thesis",
        lambda rows: of_rule(rows, "backtracking", "tv") - of_rule(rows, "masked", "tv"),
        0.0,
        "above",
    ),
    _claim(
        "masked-as-computed",
        "The outputs of masked decoding as run are as far from the restricted law as so many draws of the computed law "
        "are expected to be, within 0.1.",
        "not in the thesis",
        lambda rows: of_rule(rows, "masked", "tv") - of_rule(rows, "masked", "drawn_tv"),
        0.0,
        "equal",
        margin=0.1,
    ),
)
