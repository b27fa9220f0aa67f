"""How much faster is an Ising model learned from its masked conditionals when more sites are masked?

Figures 4.1 and 4.2 of the thesis: models of four spins, all coupled with the same J, are fitted by k-pseudolikelihood.
The squared error of the parameters is measured by the size of the training set, for k = 1 to 4 masked sites. The thesis
has ten repetitions and prints no numbers. Here, the figures are repeated many times. By theory (Lemma 4.1.1), n times
the squared error tends to the trace of the asymptotic covariance, which is computed exactly and compared.

Every sample has one random mask, as in Definition 4.1.2. Then k of N sites are scored per sample, which is most of the
effect. As a control, all masks of size k of every sample are scored. Then the errors are almost equal. One replication
is one repetition of the figures, with separate data sets for every coupling and size.

Deviations: the thesis does not state its training sizes, and fits by gradient steps. Here, sizes are 300 to 10,000, and
every estimate is the optimum.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 4.2.1: Figures 4.1 and 4.2; Lemma 4.1.1, Theorem 4.1.1",
)
