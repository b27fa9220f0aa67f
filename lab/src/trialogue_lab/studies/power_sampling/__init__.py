"""Which samplers draw from a power of the model's distribution, and how much do they cost?

The target is p(x)^alpha, where p(x) is the probability of a complete text x under the model ("power sampling"). Random
models with three tokens are enumerated, so that output distributions, variances of weights and power sums are exact.
The power sum of a prefix is the sum of p(y)^alpha over its continuations y. The study measures per-token temperature,
the best possible rule that sees next-token distributions only, lookahead by rollouts, and the Metropolis-Hastings chain
of the source, both corrected and as released. Longer texts come from Markov models, whose powers are exact at any
length (transfer matrices). On them, 16 weighted draws, sequential Monte Carlo and the chain are compared at about equal
numbers of model calls.

Two sources seem to contradict each other. arXiv 2605.04542 states that local approximations need information about
suffixes. arXiv 2601.21590 approximates the power by scaled low temperature. Its scaling factor is the power sum, which
is information about suffixes, so that both can hold.

Deviations: The sources measure accuracy of language models on reasoning tasks. Here the models are random, and samplers
are judged by their distance to the target. Sources were read as abstracts, except sections 4.1 to 4.3 of arXiv
2510.14901. Its released code is followed as `PowerMetropolis.released` states it. Claims about chains on texts that end
at different lengths are about the power 2, because even the corrected chain is far from the power 4 after 100 steps.
Distances on Markov models compare one statistic of the texts. They are lower bounds of the total variation, and include
the error of a finite number of outputs, which is reported for exact draws.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="arXiv 2510.14901, 2602.10273, 2605.04542 and 2601.21590")
