"""How many next-token distributions can an attention-only transformer be built to store, and at what precision?

Tests the statements of the document on memorization in attention-only transformers by construction. The study measures
the rank of the features of generic heads, and finds where the published formula for it fails. It builds networks that
store as many distributions or associations as they have features, and measures how additional heads reduce numerical
errors. It measures the accuracy of networks that store only some associations, and how tight the published bounds are
for the remaining contexts. Finally, it measures the divergence that a narrow embedding implies for every network.

Deviations: The construction solves one linear system and includes the skip connection exactly. It therefore does not
need the limit of the document's proof (gamma). Contexts have two tokens. Targets are random (Dirichlet with
concentration 1/2).
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Memorization in attention-only transformers: Lemma 2, Theorems 1 and 2, Corollaries 1 and 2, Remark 2",
)
