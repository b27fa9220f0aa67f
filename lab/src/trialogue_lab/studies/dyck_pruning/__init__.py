"""How wide must a random network be, so that pruning alone makes it any given one?

Section 2.2.4 of the thesis at small size: which subsets of products of random weights add up to the weights that are
wanted (the lemmas behind Theorem 2.2.3), for numbers, matrices, scores of attention and two ReLU layers; whole
transformers of four or eight layers pruned to one or two; and two targets whose pruned networks share a weight matrix
(Corollary 2.2.3).

Deviations: the best subset for each weight, by meeting in the middle, in place of one that is near enough; eps is what
comes out. Targets are 2 wide, with C = 0.5.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.2.4: Theorem 2.2.3, Corollary 2.2.3, Lemmas 2.2.2, 2.2.5 to 2.2.7",
)
