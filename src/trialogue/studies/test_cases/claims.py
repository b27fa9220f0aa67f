"""Claims of the study, and the quantities that texts quote.

What the thesis says of its model is held against the model of the run. The same sentences about the surrogate, which
every repetition trains from scratch, are ours: nothing of it is borrowed, so that they speak of trainings.
"""

from dataclasses import replace

from trialogue.ledger import NOT_PRINTED, Claim
from trialogue.studies.test_cases import decodings
from trialogue.studies.test_cases.config import ALONE, BATCH
from trialogue.studies.test_cases.quantities import (
    lead_on_the_grid,
    measured,
    per_query,
    seconds_per_query,
    tracking,
)
from trialogue.studies.test_cases.statements import published_claim, said

EFFICIENCY = "Thesis section 3.4.1"
_NUCLEUS, _ALGORITHM = decodings.BASELINE.name, decodings.TRAINED.name
_LOG_FACTOR = 0.2231  # log 1.25
_BLOCKS = decodings.block_best_of(4).name
_ONLY_OF_THE_MODEL = (
    "last-layer-is-worse",
    "misleading-names-hurt-nucleus",
    "misleading-names-spare-algorithm",
)

PUBLISHED = (
    *said(beside=False),
    published_claim(
        "best-of-the-grid",
        "Without a verifier top-p 0.95 and T = 1 give the highest distinct accuracy of the grid (lead over the best "
        "rival, which the other repetitions name).",
        lead_on_the_grid() > 0,
        "the grid search of the baselines, Table 3.13",
        "0.660 ± 0.042 against 0.634 ± 0.023 at top-p 0.9",
    ),
    published_claim(
        "time-follows-queries",
        "Where one completion is drawn at a time, queries and seconds are positively correlated (logarithms, over "
        "lengths and both walks).",
        tracking(ALONE) > 0,
        "the second consideration",
        NOT_PRINTED,
        EFFICIENCY,
    ),
    published_claim(
        "completions-of-a-batch-take-less",
        "Completions drawn 16 at a time take fewer seconds per query than one at a time (nucleus sampling, ratio).",
        seconds_per_query(decodings.BASELINE.name, BATCH) / seconds_per_query(decodings.BASELINE.name, ALONE)
        < 1,
        "footnote 16",
        NOT_PRINTED,
        EFFICIENCY,
    ),
)

OURS = (
    *(
        replace(
            claim,
            id=f"scratch-{claim.id}",
            statement=f"Of the surrogate, trained from scratch: {claim.statement}",
            origin="ours",
        )
        for claim in said(beside=True)
        if claim.id not in _ONLY_OF_THE_MODEL
    ),
    *(
        Claim(
            f"queries-of-both-walks-cost-the-same-{where}",
            f"A query of Algorithm 1 takes as many seconds as one of nucleus sampling "
            f"within a factor of 1.25, {said_of}.",
            (seconds_per_query(_ALGORITHM, at_once) / seconds_per_query(_NUCLEUS, at_once))
            .log()
            .near(0, _LOG_FACTOR),
            f"{EFFICIENCY} (control not in the thesis)",
            origin="ours",
        )
        for where, at_once, said_of in (
            ("alone", ALONE, "one completion at a time"),
            ("together", BATCH, "16 at a time"),
        )
    ),
    Claim(
        "queries-of-candidates-cost-less-alone",
        "One completion at a time, a query of block best-of-4, whose candidates share a batch, takes fewer seconds "
        "than one of Algorithm 1 (ratio).",
        seconds_per_query(_BLOCKS, ALONE) / seconds_per_query(_ALGORITHM, ALONE) < 1,
        f"{EFFICIENCY}, footnote 16 (control not in the thesis)",
        origin="ours",
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

NUMBERS = {
    f"{name}: {label}": quantity(decoding)
    for label, decoding in {
        "Algorithm 1": decodings.TRAINED,
        "nucleus": decodings.BASELINE,
        "greedy": decodings.GREEDY,
        "ground truth": decodings.GROUND_TRUTH,
        "random verifier": decodings.RANDOM,
        "block best-of-2": decodings.block_best_of(2),
    }.items()
    for name, quantity in (("distinct accuracy", measured), ("distinct correct in 100 queries", per_query))
}
