"""Claims of the study: entries of value matrices that are trained by SGD on the squared loss."""

from trialogue_lab.ledger import Claim, Criterion, cited, ours
from trialogue_lab.studies.topic_values.measure import USUAL_WEIGHTS, WITH_ATTENTION, WITH_L2, WITHOUT_L2
from trialogue_lab.studies.topic_values.statistics import entries, prominence, standing

_SETTING = (
    "The source prints neither the number of steps nor the initial weights. Here, 700 steps from a standard deviation "
    "of 0.0006, chosen in a pilot by the printed size of the blocks."
)
_ARMS = {
    WITH_L2: ("2.2", "under uniform attention, with L2", "block-wise"),
    WITHOUT_L2: (
        "2.5",
        "under uniform attention, without L2",
        "over 10x (35 by the printed means): .00552563 within topics, -.00015675 (deviation .00060286) elsewhere",
    ),
    WITH_ATTENTION: (
        "2.6",
        "with attention trained too",
        "over 10x (10.06 by the printed means): .006545205 within topics, -.0006503917 (deviation .0006370574) "
        "elsewhere",
    ),
}

_TRAINED = "W^V trained by the squared loss and SGD at a rate of 0.01"


def _make_claim_near_zero(
    arm: str, name: str, shape: str, criterion: Criterion, place: str, *, grade: bool
) -> Claim:
    """Return a claim about value matrices that are trained from initial weights near zero."""
    figure, where, printed = _ARMS[arm]
    citation = cited(
        f"Thesis Figure {figure}, {place}", printed, f"thesis:T-Fig{figure}", grade=grade, setting=_SETTING
    )
    identity = f"{name}-{arm.lower().replace(' ', '-')}"
    return Claim(identity, f"From weights near zero and {where}, {_TRAINED} {shape}", criterion, **citation)


CLAIMS = (
    *(
        _make_claim_near_zero(
            arm,
            "blocks",
            "is on average more than ten times as large for words of one topic as for words of two, or more than five "
            "deviations of the latter (the smaller of these is 1).",
            standing(arm).as_ratio() > 1,
            "third panel",
            grade=True,
        )
        for arm in _ARMS
    ),
    *(
        _make_claim_near_zero(
            arm,
            "over-ten-times",
            "is on average more than ten times as large for words of one topic as for words of two, whatever the sign "
            "of the latter (ratio).",
            prominence(arm).as_ratio() > 10,
            "caption",
            grade=False,
        )
        for arm in (WITHOUT_L2, WITH_ATTENTION)
    ),
    ours(
        "usual-initial-weights-hide-blocks",
        "From a deviation of 0.02 the same training leaves the mean within topics below one deviation of the entries "
        "elsewhere (ratio).",
        entries(USUAL_WEIGHTS, "in_topic") / entries(USUAL_WEIGHTS, "other_std") < 1,
        "Thesis Figure 2.5, third panel",
    ),
)

NUMBERS = {
    f"{name}, {arm}": entries(arm, column)
    for arm in (WITHOUT_L2, WITH_ATTENTION)
    for name, column in (("within topics", "in_topic"), ("elsewhere", "other"), ("deviation", "other_std"))
}
