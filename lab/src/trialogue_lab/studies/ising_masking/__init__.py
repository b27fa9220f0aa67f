"""How much faster is an Ising model learned from its masked conditionals when more sites are masked?

Figures 4.1 and 4.2 of the thesis fit models of four spins, all coupled with the same J, by k-pseudolikelihood. They
show the squared error of the parameters by the size n of the training set, for k = 1 to 4 masked sites. The thesis has
ten repetitions and prints no numbers. Here, the figures are repeated many times. By Lemma 4.1.1, n times the squared
error tends to the trace of the asymptotic covariance Gamma. This trace is computed exactly and compared with the
measured errors.

Every sample has one random mask, as in Definition 4.1.2, so that k of N sites are scored per sample. This number of
scored sites accounts for most of the effect. As a control, all masks of size k are scored for every sample, and the
errors for different k are almost equal. One replication is one repetition of the figures, with separate data sets for
every coupling and size.

Deviations: the thesis does not state its training sizes, and fits by gradient steps. Here, sizes are 300 to 10,000, and
every fit is run to its optimum.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Thesis section 4.2.1: Figures 4.1 and 4.2; Lemma 4.1.1, Theorem 4.1.1"
)
