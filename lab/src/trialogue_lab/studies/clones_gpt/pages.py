"""Tables and the figure of the study, which are those of the study `clones` with other captions."""

from dataclasses import replace

from trialogue_lab.studies.clones.pages import chains_table, followed_figure, saturations_table

TABLES = (
    replace(
        saturations_table,
        source="Figure 5",
        note="first step at which the loss of a decoder is within 5 % of its total fall from its minimum; mean ± one "
        "standard deviation over orders of the data, with the same initial weights",
    ),
    replace(chains_table, source="section A.3", note="columns as in the study clones"),
)
FIGURES = (
    replace(
        followed_figure,
        caption="Loss of a decoder on the next token during its training, on clones of growing order and on the text "
        "itself. Clones are sampled by the published chain (first number of sweeps) or by Gibbs (last number). Means "
        "over orders of the data, with bands of one standard deviation. Dotted: steps at which losses reach their "
        "minimum.",
    ),
)
