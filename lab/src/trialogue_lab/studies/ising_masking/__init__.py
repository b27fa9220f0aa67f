"""How much faster is an Ising model learned from its masked conditionals when more sites are masked?

Figures 4.1 and 4.2 of the thesis: four spins, all coupled with the same J, are fitted by k-pseudolikelihood, and the
squared error of the parameters is followed as the training set grows, for k = 1 to 4 masked sites. The thesis draws
ten repetitions and prints no numbers. Here the figure is repeated many times, and beside it stands what theory says of
it: n times the squared error tends to the trace of the asymptotic covariance (Lemma 4.1.1), computed exactly.

Every sample comes with one random mask, as in Definition 4.1.2. Then k sites of N are scored per sample, and most of
the effect is that. The control scores all masks of size k of every sample: then there is almost no gap.
One replication is one repetition of the figure, with data sets of its own for every coupling and size.

Deviations: the thesis does not name its training sizes, and descends by gradient steps; here the sizes are 300 to
10,000, and every estimate is the optimum itself.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 4.2.1: Figures 4.1 and 4.2; Lemma 4.1.1, Theorem 4.1.1",
)
