"""Tables of the study on efficiency: slopes of Figure 3.3, seconds of a query, and what the conclusion rests on."""

from collections.abc import Callable

from trialogue.ledger import Quantity, ResultTable
from trialogue.studies.test_cases.config import ALONE, BATCH
from trialogue.studies.test_cases.decodings import (
    BASELINE,
    HOT,
    HOT_BASELINE,
    TRAINED,
    WIDE,
    WIDE_BASELINE,
    block_best_of,
)
from trialogue.studies.test_cases.published import PUBLISHED, REQUESTED
from trialogue.studies.test_cases.quantities import (
    gain,
    measured,
    per_query,
    repeated,
    seconds_per_query,
    slope,
)
from trialogue.studies.test_cases.statements import SUMMARY, THESIS

_SLOPES = {
    "Algorithm 1, top-p 0.95": TRAINED,
    "no verifier, top-p 0.95": BASELINE,
    "Algorithm 1, top-p 1": WIDE,
    "no verifier, top-p 1": WIDE_BASELINE,
    "Algorithm 1, top-p 1, T = 1.2": HOT,
    "no verifier, top-p 1, T = 1.2": HOT_BASELINE,
}
_OF_MODEL, _OF_SURROGATE = "model", "surrogate"


def _seconds() -> dict[str, dict[str, Quantity]]:
    return {
        label: {
            f"{at_once} at once, ms": seconds_per_query(rule.name, at_once) * 1000
            for at_once in (ALONE, BATCH)
        }
        for label, rule in (
            ("nucleus sampling", BASELINE),
            ("Algorithm 1", TRAINED),
            ("block best-of-4", block_best_of(4)),
        )
    }


def _conclusion() -> dict[str, dict[str, Quantity]]:
    settings = ((_OF_MODEL, False), (_OF_SURROGATE, True))
    quantities: dict[str, Callable[[bool], Quantity]] = {
        "reduces query complexity: queries over those of nucleus sampling": lambda beside: (
            measured(TRAINED, "queries", beside) / measured(BASELINE, "queries", beside)
        ),
        "reduces query complexity: more distinct correct cases in 100 queries": lambda beside: (
            per_query(TRAINED, beside) - per_query(BASELINE, beside)
        ),
        "improves accuracy: gain in distinct accuracy over nucleus sampling": lambda beside: gain(
            TRAINED, BASELINE, beside
        ),
        "maintains diversity: more repeated correct cases per case asked for": lambda beside: (
            repeated(TRAINED, beside) - repeated(BASELINE, beside)
        ),
        "tokens suffice as blocks: gain in distinct accuracy over block best-of-2": lambda beside: gain(
            TRAINED, block_best_of(2), beside
        ),
    }
    return {
        sentence: {label: of(beside) for label, beside in settings} for sentence, of in quantities.items()
    }


EFFICIENCY_TABLES = (
    ResultTable(
        title="Figures 3.3 and 3.4. Slopes: distinct correct cases per 100 further queries",
        source=f"{THESIS}, Figures 3.3 and 3.4",
        cells={
            label: {_OF_MODEL: slope(rule), _OF_SURROGATE: slope(rule, beside=True)}
            for label, rule in _SLOPES.items()
        },
        published={
            label: {_OF_MODEL: 100 * REQUESTED * PUBLISHED[rule].accuracy / PUBLISHED[rule].queries}
            for label, rule in _SLOPES.items()
        },
        note="by least squares over what is counted after 1, 2, ... runs of each name; the thesis prints no slopes: "
        "its column is the quotient of accuracy and queries in Table 3.13",
    ),
    ResultTable(
        title="What a query costs in CPU time, by walk and by rows that are moved at once",
        source="Thesis section 3.4.1",
        cells=_seconds(),
        note="one thread; the first pass over the prompt counts as one query, and takes longer; of block best-of-n, "
        "one completion at a time moves n rows",
    ),
    ResultTable(
        title="The sentences of the conclusion, each traced to what decides it",
        source=SUMMARY,
        cells=_conclusion(),
        rows_are="Algorithm 1 ...",
        note="claims summary-queries, more-per-query, algorithm-beats-nucleus, diversity-kept and "
        "algorithm-beats-block-best-of-2, and those of the same names that begin with scratch-",
    ),
)
