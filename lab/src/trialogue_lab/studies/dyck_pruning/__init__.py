"""How wide must a random network be, so that pruning alone turns it into a given network?

This is a test of section 2.2.4 of the thesis at small size. The lemmas behind Theorem 2.2.3 approximate each target
weight by a sum over a subset of products of random weights. This study measures how close such sums come to numbers,
matrices, attention scores and two ReLU layers. It also prunes whole transformers of four or eight layers to
transformers of one or two layers. For Corollary 2.2.3, it prunes the same network to two targets such that the pruned
networks share a weight matrix.

Deviations: The best subset is used for each weight, instead of any subset that is close enough. It is found by a
meet-in-the-middle search. The error eps is measured instead of prescribed. Targets have width 2, with C = 0.5.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Thesis section 2.2.4: Theorem 2.2.3, Corollary 2.2.3, Lemmas 2.2.2, 2.2.5 to 2.2.7"
)
