"""Does a causal language model, too, learn low-order interactions of its text before high-order ones?

Figure 5 of 'A distributional simplicity bias in the learning dynamics of transformers': a decoder of GPT-Neo's kind
learns to predict the next token of a text, and is followed on clones that keep interactions of growing order. The
clones are those of the study `clones`, drawn anew, with all that is said there of networks, chains and the text.

At `default` and `night` all is small: factored networks of 1, 2 and 4 layers for 2, 4 and 6, without layer norm, 320
tokens for 10,000, 16 a sequence for 128, and a learning rate four times the source's. Clones are those of one network
at each depth and one draw from it, and the published chains have not settled in 70 sweeps (R-hat in the table of
chains). Five trainings cannot decide the claim `in-order`: five of five have an interval from 0.36 to 1, which holds
its threshold of 0.8. `night` and `paper` have the 27 trainings of `clones`, and decide it.

At `default` the losses on all clones rise again after a fifth of the steps, while the loss on the text still falls.
A late fall is measured to the minimum loss. A separate claim states that the loss on the clone of all orders keeps
falling.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="A distributional simplicity bias in the learning dynamics of transformers: Figure 5",
)
