"""Does a verifier that erases the last few tokens fix the errors of a trained model, and what does it cost?

This is a replication of thesis section 3.2.1. Transformers are trained on Dyck strings of length 32 with type
probability p = 0.2 and opening probability q = 0.5. They then complete prompts sampled with p = 0.8, on which they make
errors. A probe is trained to classify the hidden states of erroneous and correct prefixes. It becomes the verifier of
tokenwise rejection sampling with backtracking (Algorithm 1). Every table of the section is measured. Controls that are
not in the thesis are greedy decoding, a random verifier and the exact process verifier. One replication is one
training, with its own errors, probe and prompts.

Deviations: In all presets except `paper`, the models are small and learn faster. In `night` and `pilot`, their weights
are averaged as in the thesis, at a constant learning rate. Training ends once the model predicts 99.95 % of the closing
brackets of its validation strings. Trainings that do not reach this accuracy are kept. The accuracy on other strings
should exceed 99.9 %. The share of trainings that meet this precondition is reported, and is not a claim. In `smoke` and
`default`, training takes a fixed number of steps, with a cosine schedule and without averages. There are 4,000 unseen
prompts (`default`: 2,000), completed twice. The thesis completes 10,000 prompts five times. The error-inducing prompts
of Tables 3.1, 3.2 and 3.4 come from errors on which the probe was not trained. As in the thesis, the erroneous examples
of the probe end with tokens of the model, and the correct examples are sampled from the distribution of the prompts.
The probe may therefore learn other differences than correctness.

After erasing tokens, Algorithm 1 appends tokens greedily (the redo). It is measured as printed, as in the released code
(`Backtracking.released`), and restricted to the number of erased tokens. Seconds are processor time of one thread.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 3.2.1: Tables 3.1 to 3.5 and 3.16, Figures 3.1 and 3.2, Algorithm 1",
    kind="table",
)
