"""Does the chain that samples from a model bound what its conditionals cost to learn, and how tight is the bound?

Theorems 4.1.2 and 4.1.3 of the thesis: if block dynamics with a mask law p_K has the Poincaré constant C on p, the
pseudolikelihood estimator with the same masks has an asymptotic covariance Gamma ⪯ C I^{-1}, where I^{-1} is that of
maximum likelihood. Theorem 4.1.1: masking more sites is no worse. Both are held against random Ising models, all pairs
and fields free, with every number k of masked sites, random weighted blocks, and random masks that depend on the state;
Theorem 4.1.1 also against random exponential families. Everything is enumerated: rows carry no sampling error.

How tight is read in two ways: over directions, as the smallest constant that could stand for C, in units of C; and as
the trace of Gamma, the expected squared error times n, in units of C Tr I^{-1}. One replication is one set of random
models and mask laws. A theorem says something of every model, so that its claim has one number: the worst case over
all models of the run.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 4.1: Theorems 4.1.1 to 4.1.3, Definitions 4.1.2 to 4.1.10",
)
