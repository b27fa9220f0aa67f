"""Which weights are optimal for one attention layer on documents of topics, and are the thesis' formulas correct?

In a topic model, each topic has its own words, and a document mixes a few topics. A one-layer transformer predicts
masked words. The study tests section 2.1 of the thesis without training. Proposition 2.1.1 is tested on simulated
documents. Lemma 2.1.1 and Theorems 2.1.1, 2.1.2 and 2.1.4 are tested on all documents of small topic models. The losses
of Theorems 2.1.3 and 2.1.5, which depend on two attention weights, are minimized for ten to a million topics, and
computed on a grid of weights for 100 topics of 300 words. The optimum is also computed for documents of the lengths
used in training. All numbers are exact, except in the simulation.

Corrections by this project: Lemma 2.1.1 fails if every document contains all topics. The bias of Theorem 2.1.1 must be
zero at [MASK], and so must its example. The Hessian of Remark 2.1.8 has as its rank the number of topics. The proofs
leave out attention to [MASK], which shifts the optimum. Both optima are known to leading order, so that the printed
intervals are no longer needed. For documents of finite length, the optimum is unique and has larger entries on its
diagonal. Theorem 2.1.2 is its limit only with a penalty. The thesis does not state the masking of Figures 2.7 and 2.8.
This study uses the masking of its experiments.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.1: Lemma 2.1.1, Proposition 2.1.1, Theorems 2.1.1 to 2.1.5, Figures 2.7 and 2.8",
)
