"""Claims of the study, and the statistics that the documentation quotes."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, ours
from trialogue_lab.studies.constrained_law import statistics as stats

_SETTING = (
    "A chat model of 135 million parameters under a regular expression and a JSON schema, and the first leaf of the "
    "walk. The source states the property of the stationary distribution."
)

_biased = partial(
    ours,
    source="Thesis section 3.1, Proposition 3.1.2, and section 3.7",
    published="not the conditional distribution",
)
_control = partial(ours, source="Thesis section 3.1")

CLAIMS = (
    _biased(
        "masked-is-biased-regex",
        "Under a regular expression masked decoding is more than 0.1 (total variation) from the restricted law.",
        stats.make_weighted_statistic(1, kind="regex") > 0.1,
    ),
    _biased(
        "masked-is-as-biased-json",
        "Under a JSON schema masked decoding is more than 0.1 from the restricted law.",
        stats.make_weighted_statistic(1, kind="json-schema") > 0.1,
    ),
    _biased(
        "masked-is-biased-json",
        "Under a JSON schema masked decoding is more than 0.05 from the restricted law.",
        stats.make_weighted_statistic(1, kind="json-schema") > 0.05,
    ),
    Claim(
        "value-guided-is-closer",
        "The first leaf of the value-guided walk is closer to the restricted law than masked decoding.",
        stats.decoded("exact", "value-guided") - stats.make_weighted_statistic(1) < 0,
        **cited(
            "Thesis sections 3.3.1 and 3.7, Algorithm 2",
            "its distribution at the leaves is the conditional one",
            "thesis:V-SUM.calibration",
            setting=_SETTING,
        ),
    ),
    _control(
        "weights-repair",
        "An output drawn by weight among the largest number of masked samples is less than half as far.",
        stats.best_weighted() - stats.make_weighted_statistic(1) / 2 < 0,
    ),
    _control(
        "weights-are-cheaper-than-rejection",
        "Masked samples with their weights are worth at least ten times as many effective samples per query as "
        "rejection gives (decimal logarithm, mean over questions).",
        stats.gain_over_rejection() > 1,
    ),
    _control(
        "resampling-on-the-way-helps",
        "Sequential Monte Carlo is closer than drawing by weight among as many masked samples (16; counts of 1,000 "
        "outputs each).",
        stats.gain_of_resampling_on_the_way() < 0,
    ),
    _control(
        "resampling-on-the-way-adds-little",
        "Sequential Monte Carlo is not closer, by more than 0.02, than drawing by weight among as many masked samples "
        "(16; counts of 1,000 outputs each).",
        stats.gain_of_resampling_on_the_way() > -0.02,
    ),
    _control(
        "backtracking-is-no-closer",
        "Backtracking with the exact verifier (Q = B = 4) is not closer to the restricted law than masked decoding "
        "(counts of equally many outputs).",
        stats.make_sampled_statistic("backtracking") - stats.make_sampled_statistic("masked") > 0,
    ),
    *(
        _control(
            identity,
            "The outputs of masked decoding as run are as far from the restricted law as so many draws of the computed "
            f"law are expected to be, within {margin:g}.",
            (
                stats.make_sampled_statistic("masked") - stats.make_sampled_statistic("masked", "drawn_tv")
            ).near(0, margin=margin),
        )
        for identity, margin in (("masked-exactly-as-computed", 0.05), ("masked-as-computed", 0.1))
    ),
)

_COLUMNS = {"valid": "valid", "total variation": "tv", "queries": "queries", "seconds": "cpu_seconds"}

_COMPUTED = (
    *((f"{size} by weight", ("exact", "masked, weighted"), size) for size in (1, 16, 64)),
    ("smc", ("simulated", "smc"), 16),
    ("value-guided", ("exact", "value-guided"), 1),
)

NUMBERS = {
    **{
        f"{rule}, as run: {name}": stats.make_sampled_statistic(rule, column)
        for rule in ("no rule", "masked", "backtracking", "smc", "value-guided")
        for name, column in _COLUMNS.items()
        if rule in ("no rule", "backtracking") or name in ("valid", "seconds")
    },
    **{
        f"{label}: {name}": stats.decoded(*place, _COLUMNS[name], size=size)
        for label, place, size in _COMPUTED
        for name in ("total variation", "queries")
    },
    **{
        f"{label}: typical calls": stats.typical_calls(*place, size=size).as_ratio()
        for label, place, size in _COMPUTED
    },
    **{
        f"{rule}, as run: typical calls": stats.typical_calls("run", rule).as_ratio()
        for rule in ("no rule", "backtracking")
    },
    **{
        f"masked, {kind}: total variation": stats.make_weighted_statistic(1, kind=kind)
        for kind in ("regex", "json-schema")
    },
    "rejection: queries": stats.rejection_queries(),
    "effective samples over rejection": stats.samples_over_rejection(),
    "largest share unexplored": stats.unexplored(),
}
