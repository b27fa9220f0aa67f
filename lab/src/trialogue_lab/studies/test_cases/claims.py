"""Claims of the study: the thesis' tables and figures, each on the pretrained model and on models from scratch.

What the thesis says is published of the pretrained model that the run borrows. That it holds of a small model which
learned nothing but this task is ours, and so are controls. That two decodings do equally well needs a margin, which is
a grade of this project.
"""

from collections.abc import Callable

from trialogue_lab.ledger import Claim, Criterion
from trialogue_lab.studies.test_cases import decodings
from trialogue_lab.studies.test_cases.accuracy_claims import MISLEADING, ON_BOTH
from trialogue_lab.studies.test_cases.cost_claims import COST_CLAIMS
from trialogue_lab.studies.test_cases.decodings import block_best_of
from trialogue_lab.studies.test_cases.lines import headed
from trialogue_lab.studies.test_cases.statistics import gain, measured, per_query
from trialogue_lab.studies.test_cases.subjects import ROLES, Role
from trialogue_lab.studies.test_cases.twins import MARGIN, Statement, on_both, on_pretrained


def _control(
    identity: str, statement: str, criterion: Callable[[Role], Criterion], source: str
) -> list[Claim]:
    """A control of ours, on both models."""
    return on_both(Statement(identity, statement, criterion, source, origin="ours"))


CLAIMS = (
    *(claim for statement in ON_BOTH for claim in on_both(statement)),
    *(on_pretrained(statement) for statement in MISLEADING),
    *COST_CLAIMS,
    *_control(
        "truth-beats-trained",
        "With the ground truth Algorithm 1 has a higher distinct accuracy than with the trained verifier.",
        lambda role: gain(decodings.GROUND_TRUTH, decodings.TRAINED, role) > 0,
        "Table 3.12",
    ),
    *_control(
        "random-beats-the-baseline",
        "Even with a random verifier Algorithm 1 has a higher distinct accuracy than nucleus sampling: what the greedy "
        "redo gains alone.",
        lambda role: gain(decodings.RANDOM, decodings.BASELINE, role) > 0,
        "Table 3.12",
    ),
    *_control(
        "released-is-the-same",
        "With the redo as the released code accumulates it, every prefix judged, Algorithm 1 has the distinct accuracy "
        f"that it has as printed within {MARGIN}.",
        lambda role: gain(decodings.RELEASED, decodings.TRAINED, role).near(0, MARGIN),
        "Algorithm 1",
    ),
)

_LABELLED = {
    "Algorithm 1": decodings.TRAINED,
    "nucleus": decodings.BASELINE,
    "greedy": decodings.GREEDY,
    "ground truth": decodings.GROUND_TRUTH,
    "random verifier": decodings.RANDOM,
    "block best-of-2": block_best_of(2),
}

NUMBERS = {
    headed(f"{name}: {label}", role): quantity(decoding, role=role)
    for role in ROLES
    for label, decoding in _LABELLED.items()
    for name, quantity in (("distinct accuracy", measured), ("distinct correct in 100 queries", per_query))
}
