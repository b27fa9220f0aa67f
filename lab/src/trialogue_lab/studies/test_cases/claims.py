"""Claims of the study: tables and figures of the thesis, for the pretrained model and for models from scratch.

Statements of the thesis about the pretrained model are published claims. The same statements about small models that
are trained on this task only are claims of this project, and so are controls. A claim that two decodings are equally
good requires a margin, which is a grade of this project.
"""

from trialogue_lab.studies.test_cases import decodings
from trialogue_lab.studies.test_cases.accuracy_claims import MISLEADING, ON_BOTH
from trialogue_lab.studies.test_cases.config import ROLES, mark_heading
from trialogue_lab.studies.test_cases.cost_claims import COSTS
from trialogue_lab.studies.test_cases.statements import MARGIN, ModelStatement, more, same
from trialogue_lab.studies.test_cases.statistics import measured, per_query

_CONTROLS = (
    ModelStatement(
        "truth-beats-trained",
        "With the ground truth Algorithm 1 has a higher distinct accuracy than with the trained verifier.",
        more(decodings.GROUND_TRUTH, decodings.TRAINED),
        source="Table 3.12",
    ),
    ModelStatement(
        "random-beats-the-baseline",
        "Even with a random verifier Algorithm 1 has a higher distinct accuracy than nucleus sampling: what the greedy "
        "redo gains alone.",
        more(decodings.RANDOM, decodings.BASELINE),
        source="Table 3.12",
    ),
    ModelStatement(
        "released-is-the-same",
        "With the redo as the released code accumulates it, every prefix judged, Algorithm 1 has the distinct accuracy "
        f"that it has as printed within {MARGIN}.",
        same(decodings.RELEASED, decodings.TRAINED),
        source="Algorithm 1",
    ),
)

CLAIMS = (
    *(claim for statement in ON_BOTH for claim in statement.on_both),
    *(statement.on_pretrained for statement in MISLEADING),
    *(claim for statement in (*COSTS, *_CONTROLS) for claim in statement.on_both),
)

_LABELLED = {
    "Algorithm 1": decodings.TRAINED,
    "nucleus": decodings.BASELINE,
    "greedy": decodings.GREEDY,
    "ground truth": decodings.GROUND_TRUTH,
    "random verifier": decodings.RANDOM,
    "block best-of-2": decodings.make_block_best_of(2),
}

NUMBERS = {
    mark_heading(f"{name}: {label}", role): quantity(decoding, role=role)
    for role in ROLES
    for label, decoding in _LABELLED.items()
    for name, quantity in (("distinct accuracy", measured), ("distinct correct in 100 queries", per_query))
}
