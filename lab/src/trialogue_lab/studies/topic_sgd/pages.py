"""Figure and table of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import COLORS, Cells, Rows, figure, finish, panels, result_table
from trialogue_lab.studies.topic_sgd.measure import VALUES_ALONE, arm_with_attention
from trialogue_lab.studies.topic_sgd.statistics import attention, fall
from trialogue_lab.studies.topic_values.statistics import entries, prominence

_KINDS = {"same word": "same_word", "same topic": "same_topic", "other topics": "other"}
_PUBLISHED_ATTENTION = {0.01: (0.0105, 0.0106, 0.00673), 0.03: (0.0140, 0.0103, 0.00641)}
_ARMS = {rate: arm_with_attention(rate) for rate in _PUBLISHED_ATTENTION}


@figure(
    "attention",
    "Mean attention weights of networks trained by SGD and cross-entropy, by kind of word pair. Each point is one set "
    "of documents, and crosses are the numbers of Table 2.1. The line is uniform attention.",
)
def _attention_figure(rows: Rows) -> Drawing:
    drawing, panes = panels(len(_ARMS), width=3.6, height=3.2)
    for axes, (rate, arm) in zip(panes, _ARMS.items(), strict=True):
        table = rows.where("training", name=arm)
        for place, kind in enumerate(_KINDS.values()):
            weights = table[f"attention_{kind}"]
            axes.plot([place] * len(weights), weights, "o", color=COLORS[0], alpha=0.6)
        axes.plot(range(len(_KINDS)), _PUBLISHED_ATTENTION[rate], "x", color=COLORS[1])
        axes.axhline(0.01, color="0.6", linewidth=1)
        axes.set_xticks(range(len(_KINDS)), _KINDS)
        finish(axes, f"SGD at {rate:g}", xlabel="kind of word pair", ylabel="attention weight")
    return drawing


@result_table(
    "Attention and values of networks trained by SGD and cross-entropy, with inputs of the released size",
    "Table 2.1, Figures 2.5 and 2.6",
    published={
        _ARMS[rate]: dict(zip(_KINDS, numbers, strict=True)) for rate, numbers in _PUBLISHED_ATTENTION.items()
    },
    row_heading="training",
    note="mean ± one standard deviation over sets of documents; attention is rescaled to documents of 100 words. "
    "Value within topics includes the diagonal. Ratio: this value divided by the absolute value elsewhere. Fall: nats "
    "by which the test loss is below that of a constant prediction.",
)
def _sgd_table(_: Rows) -> Cells:
    return {
        arm: {head: attention(arm, kind) for head, kind in _KINDS.items()}
        | {
            "value within topics": entries(arm, "in_topic"),
            "elsewhere": entries(arm, "other"),
            "ratio": prominence(arm).as_ratio(),
            "fall": fall(arm),
        }
        for arm in (VALUES_ALONE, *_ARMS.values())
    }


TABLES = (_sgd_table,)
FIGURES = (_attention_figure,)
