"""Does the mixing of a chain bound the statistical cost of learning its conditionals, and how tight is the bound?

Pseudolikelihood estimation fits a model by predicting a random set of masked variables from all others. Block dynamics
with the same masks is the Markov chain that resamples the masked variables. Let C be its Poincaré constant (inverse
spectral gap), which is large if the chain mixes slowly. Theorems 4.1.2 and 4.1.3 of the thesis bound the asymptotic
covariance Gamma of the estimator: Gamma ⪯ C I^{-1}, where I^{-1} is the asymptotic covariance of maximum likelihood.
Theorem 4.1.1 states that masking more variables is no worse. The theorems are tested on random Ising models. Masks have
any number k of random spins, are random weighted sets of spins, or depend on the state. Theorem 4.1.1 is also tested on
random exponential families. All states are enumerated, so that measurements have no sampling error.

Tightness is measured in two ways. Over directions of the parameter space, it is the smallest constant that satisfies
the bound, divided by C. For the trace, it is Tr Gamma / (C Tr I^{-1}). Tr Gamma is the expected squared error times the
sample size. One replication is one set of random models and mask distributions. A theorem makes a statement about every
model. The claim about it therefore has one number, the worst case over all models of the run.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Thesis section 4.1: Theorems 4.1.1 to 4.1.3, Definitions 4.1.2 to 4.1.10"
)
