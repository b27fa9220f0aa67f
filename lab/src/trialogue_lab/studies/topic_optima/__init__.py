"""What is optimal for one layer of attention on documents of topics, and where do the thesis' constants hold?

Section 2.1 of the thesis without training: Proposition 2.1.1 against simulated documents; Lemma 2.1.1 and Theorems
2.1.1, 2.1.2 and 2.1.4 against all documents of small topic models; the losses of Theorems 2.1.3 and 2.1.5 and their
minima from ten topics to a million, and their landscapes at 100 topics of 300 words; and the optimum at lengths that
training sees. All is exact but the simulation.

Corrections of ours: with all topics in every document Lemma 2.1.1 fails; the bias of Theorem 2.1.1 is zero at [MASK],
and so must its example be there; the Hessian of Remark 2.1.8 has rank T; attention to [MASK], which the proofs leave
out, moves the optimum; and to leading order both optima are known, so that the printed intervals are needed no more.
At any finite length there is one optimum, with a diagonal, and Theorem 2.1.2 is its limit only with a penalty. The
thesis does not say with which masking Figures 2.7 and 2.8 are drawn: here with that of its other experiments.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.1: Lemma 2.1.1, Proposition 2.1.1, Theorems 2.1.1 to 2.1.5, Figures 2.7 and 2.8",
)
