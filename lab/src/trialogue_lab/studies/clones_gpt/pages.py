"""Tables and the figure of the study: the clones, and a decoder followed on them."""

from dataclasses import replace

from trialogue_lab.studies.clones.pages import chains_table, followed_figure, saturations_table

TABLES = (
    replace(
        saturations_table,
        source="Figure 5",
        note="Steps until the loss of a decoder is within 5 % of its fall from its minimum; ± is the deviation over "
        "orders of the data, with the same initial weights.",
    ),
    replace(chains_table, source="section A.3", note="As in the study clones."),
)
FIGURES = (
    replace(
        followed_figure,
        caption="A decoder followed through its training on clones of growing order (by the published chain after the "
        "first number of sweeps, by Gibbs after the last) and on the text itself: loss of the next token; means over "
        "orders of the data, bands of one deviation; dotted lines where a loss is at its lowest.",
    ),
)
