"""Claims of the study about rows of SGD, and the numbers that documentation pages quote."""

from functools import partial

from trialogue_lab.ledger import Claim, Precondition, cited
from trialogue_lab.studies.topic_sgd.config import FIGURE_RATE
from trialogue_lab.studies.topic_sgd.measure import VALUES_ALONE, arm_with_attention
from trialogue_lab.studies.topic_sgd.statistics import attention, fall, over
from trialogue_lab.studies.topic_values.statistics import entries, standing

_SETTING = (
    "Initial weights and learning rates are those of the released code for its normalized inputs. The source prints "
    "neither the scale of inputs nor the number of steps. Here, training takes 20 passes over 10,000 documents, the "
    "largest number in the released code."
)
_TABLE = "Thesis Table 2.1"
_PRINTED = {FIGURE_RATE: ".0106 and .00673", 0.03: ".0103 and .00641"}
_ARMS = {rate: arm_with_attention(rate) for rate in _PRINTED}
_IN_BLOCKS = (
    "is on average more than ten times as large for words of one topic as for words of two, or more than five "
    "deviations of the latter (the smaller of these is 1)."
)
_INPUTS = "With inputs as large as in the released code"


def _learned(arm: str, described: str) -> Precondition:
    return Precondition(
        f"the mean test loss {described} is more than 0.1 nats below the loss of a constant prediction",
        fall(arm) > 0.1,
    )


_table_row = partial(cited, _TABLE, statement_id="thesis:T-Tab2.1", setting=_SETTING)

CLAIMS = (
    *(
        Claim(
            f"attention-to-topics-{rate:g}",
            f"{_INPUTS}, SGD at {rate:g} and cross-entropy lead to more attention to other words of the topic than to "
            "words of other topics (logarithm of the ratio).",
            over(arm, "same_topic", "other") > 0,
            **_table_row(_PRINTED[rate], preconditions=(_learned(arm, f"at {rate:g}"),)),
        )
        for rate, arm in _ARMS.items()
    ),
    Claim(
        "attention-to-itself-0.03",
        f"{_INPUTS}, SGD at 0.03 and cross-entropy lead to more attention to the same word than to other words of the "
        "topic (logarithm of the ratio).",
        over(_ARMS[0.03], "same_word", "same_topic") > 0,
        **_table_row(".0140 and .0103", preconditions=(_learned(_ARMS[0.03], "at 0.03"),)),
    ),
    *(
        Claim(
            f"values-in-blocks-{ending}",
            f"{_INPUTS} and {where}, W^V trained by cross-entropy and SGD at 0.01 {_IN_BLOCKS}",
            standing(arm).as_ratio() > 1,
            **cited(
                f"Thesis Figure {figure}",
                "block-wise",
                f"thesis:T-Fig{figure}",
                grade=True,
                setting=_SETTING,
                preconditions=(_learned(arm, where),),
            ),
        )
        for ending, where, arm, figure in (
            ("alone", "under uniform attention, without L2", VALUES_ALONE, "2.5"),
            ("with-attention", "with attention trained too", _ARMS[FIGURE_RATE], "2.6"),
        )
    ),
)

NUMBERS = {
    **{
        f"{kind}, {rate:g}": attention(arm, kind)
        for rate, arm in _ARMS.items()
        for kind in ("same_word", "same_topic", "other")
    },
    **{
        f"{name}, {arm}": entries(arm, column)
        for arm in (VALUES_ALONE, _ARMS[FIGURE_RATE])
        for name, column in (("within topics", "in_topic"), ("elsewhere", "other"))
    },
    **{f"fall, {rate:g}": fall(arm) for rate, arm in _ARMS.items()},
}
