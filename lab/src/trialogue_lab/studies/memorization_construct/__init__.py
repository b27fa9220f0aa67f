"""How many next-token distributions can an attention-only transformer be built to store, and at what precision?

Tests the statements of the document on memorization in attention-only transformers. The weights of the networks are
computed, not trained. A context is a sequence of two tokens. The features of a network are the outputs of its attention
heads on all contexts, and their rank limits how many contexts it can store.

The study measures this rank for random heads, and finds network shapes for which the published formula fails. It builds
networks that store as many next-token distributions, or single next tokens, as they have features, and measures how
additional heads reduce rounding errors. It measures the accuracy of networks that store only some contexts, and how
tight the published bounds are for the remaining ones. Finally, it measures the KL divergence that a narrow embedding
implies for every network.

Deviations: The construction solves one linear system and includes the skip connection exactly. It therefore does not
need the limit (gamma to zero) of the document's proof. Target distributions are random (Dirichlet with concentration
1/2).
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Memorization in attention-only transformers: Lemma 2, Theorems 1 and 2, Corollaries 1 and 2, Remark 2",
)
