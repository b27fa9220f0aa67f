"""Tables and the figure of the study: the clones, and a decoder followed on them."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import Figure, ResultTable, Rows
from trialogue_lab.studies.clones.config import GIBBS, PUBLISHED
from trialogue_lab.studies.clones.pages import chains, draw_losses, saturations

TABLES = (
    ResultTable(
        title="Where losses on clones are at their lowest",
        source="Figure 5",
        cells=saturations,
        rows_are="clone",
        note="Steps until the loss of a decoder is within 5 % of its fall from its minimum; ± is the deviation over "
        "orders of the data, with the same initial weights.",
    ),
    ResultTable(
        title="Chains that clones are drawn by",
        source="section A.3",
        cells=chains,
        rows_are="clone",
        note="As in the study clones.",
    ),
)


def _draw(rows: Rows) -> Drawing:
    return draw_losses(rows, (PUBLISHED, GIBBS))


FIGURES = (
    Figure(
        name="followed",
        caption="A decoder followed through its training on clones of growing order (by the published chain after the "
        "first number of sweeps, by Gibbs after the last) and on the text itself: loss of the next token; means over "
        "orders of the data, bands of one deviation; dotted lines where a loss is at its lowest.",
        draw=_draw,
    ),
)
