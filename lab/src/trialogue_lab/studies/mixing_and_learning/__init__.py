"""Does the mixing of a chain bound the statistical cost of learning its conditionals, and how tight is the bound?

Tests Theorems 4.1.2 and 4.1.3 of the thesis. Suppose that block dynamics with the mask distribution p_K has the
Poincaré constant C on p. Then the pseudolikelihood estimator with the same masks has an asymptotic covariance
Gamma ⪯ C I^{-1}, where I^{-1} is the asymptotic covariance of maximum likelihood. Theorem 4.1.1 states that masking
more sites is no worse. The theorems are tested on random Ising models with free pairs and fields, for every number k of
masked sites, random weighted blocks, and random masks that depend on the state. Theorem 4.1.1 is also tested on random
exponential families. All states are enumerated, so that rows have no sampling error.

Tightness is measured in two ways. Over directions, it is the smallest constant that satisfies the bound, divided by C.
For the trace, it is Tr Gamma, which is the expected squared error times n, divided by C Tr I^{-1}. One replication is
one set of random models and mask distributions. A theorem makes a statement about every model. The claim about it
therefore has one number, the worst case over all models of the run.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 4.1: Theorems 4.1.1 to 4.1.3, Definitions 4.1.2 to 4.1.10",
)
