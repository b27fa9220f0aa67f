"""Does the attention of a transformer that closes brackets rightly show how it does so?

Section 2.2.3 of the thesis: networks with a minimal first layer, and of two layers, are trained to close brackets of
bounded depth. Do they attend as a stack would, do two seeds attend alike, how far are they from the balance that
Theorem 2.2.1 asks for, and does a regulariser towards it carry them to longer prefixes?

Deviations: fresh batches of 100 strings, 300 to 1,600 updates, where the released program trains for epochs over
100,000 tokens; words come by rejection from the law with an end; LN_C with C = 1e-5. Networks of two layers and those
of Table 2.6 are 8 and 6 of a kind where the source has 40.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.2.3: Figures 2.11 to 2.18, Table 2.6; Theorem 2.2.2, Corollary 2.2.2",
)
