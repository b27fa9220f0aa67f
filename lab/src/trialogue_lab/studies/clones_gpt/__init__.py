"""Does a causal language model also learn low-order interactions of its text before high-order ones?

This is the question of Figure 5 of 'A distributional simplicity bias in the learning dynamics of transformers'. A
decoder like GPT-Neo learns to predict the next token of a text. Its loss is recorded on clones, which are sets of
sequences with interactions of at most k tokens, for increasing k. The clones are sampled again, with the networks,
Markov chains and text of the study `clones`.

The presets `default`, `night` and `weekend` are small. They have 1, 2 and 4 factored layers instead of 2, 4 and 6, no
layer norm, 320 tokens instead of 10,000, sequences of 16 instead of 128, and four times the source's learning rate.
Clones are sampled once from one network per depth. The published chains have not converged after 70 sweeps (see R-hat
in the table of chains). Five trainings cannot decide the claim `in-order`, because the interval for five of five is
0.36 to 1, which contains the threshold of 0.8. `night` and `paper` have 27 trainings, as in `clones`, which can decide
it, and `weekend` has 52. Each run trains the networks that its clones are sampled from. With the clones of `night`, all
27 trainings have the order of `in-order`, and with those of `weekend` three in four.

At `default`, the losses on all clones rise again after a fifth of the steps, while the loss on the text still falls.
The late decrease of a loss therefore ends at its minimum. A separate claim states that the loss on the clone of all
orders keeps falling.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="A distributional simplicity bias in the learning dynamics of transformers: Figure 5"
)
