"""How many next-token laws can an attention-only transformer be built to hold, and at what precision?

The statements of the document on memorization in attention-only transformers, by construction: the rank of what generic
heads make of contexts and where the printed one fails; weights that hold as many laws or associations as that, exactly,
and what more heads do for the numbers; the accuracy when only some are stored; the printed bounds for the rest and how
tight they are; what a narrow embedding costs any network.

Deviations: the construction solves one linear system and folds the skip connection in exactly, so that the limit of the
document's proof (gamma) is not needed; contexts of two tokens; targets are drawn (Dirichlet, concentration 1/2).
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Memorization in attention-only transformers: Lemma 2, Theorems 1 and 2, Corollaries 1 and 2, Remark 2",
)
