"""Does a verifier that may erase the last few tokens fix what a trained model gets wrong, and what does it cost?

Thesis section 3.2.1. Transformers learn Dyck strings of length 32 (type probability p = 0.2, opening probability
q = 0.5) and then complete prompts drawn with p = 0.8, where they err. A probe on the hidden states of erroneous and
correct prefixes becomes the verifier of tokenwise rejection sampling with backtracking (Algorithm 1). Every table
of the section is measured, with the controls that the thesis leaves out: greedy decoding, a random verifier, and
the exact process verifier. One replication is one training, with its own errors, probe and prompts.

Deviations: the models of all presets but paper are small and learn faster. Those of night and pilot are averaged as in
the thesis, at a constant rate, and train until they predict 99.95 % of the closing brackets of strings of their own;
all trainings are kept, those too that do not get there. That they predict more than 99.9 % of those of other strings
is a precondition, whose share is reported, and no claim. Those of smoke and default train for a fixed number of steps
with a cosine schedule and without averages. Unseen prompts are 4,000 (default: 2,000), completed twice, instead of
10,000 five times. The error-inducing prompts of Tables 3.1, 3.2 and 3.4 are errors that the probe was not trained on.
As in the thesis, the probe's erroneous examples end in what the model wrote and the correct ones are drawn from the
law of the prompts, so that it may learn more than correctness.

The redo of Algorithm 1 is measured as printed, as the released code does it (`Backtracking.released`), and where only
what was erased is redone. Seconds are processor time of one thread.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 3.2.1: Tables 3.1 to 3.5 and 3.16, Figures 3.1 and 3.2, Algorithm 1",
    kind="table",
)
