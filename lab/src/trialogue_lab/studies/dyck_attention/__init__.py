"""Does the attention of a transformer that predicts closing brackets correctly show how it does so?

Section 2.2.3 of the thesis trains networks to predict closing brackets of bounded depth. Some networks have a fixed
embedding as their first layer (minimal networks), others have two trained layers. This study asks four questions about
the trained networks. Do they attend like a stack? Do networks of different seeds attend alike? How far are they from
the balance of Theorem 2.2.1? Does a regularizer that restores balance improve the accuracy on longer prefixes?

Deviations: Training takes fresh batches of 100 strings for 300 to 1,600 updates. The released program trains for epochs
over 100,000 tokens. Words are sampled by rejection from the distribution with an end of sequence. LN_C has C = 1e-5.
There are 8 networks of each kind with two layers, and 6 of each kind in Table 2.6. The source has 40 of each.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Thesis section 2.2.3: Figures 2.11 to 2.18, Table 2.6; Theorem 2.2.2, Corollary 2.2.2"
)
