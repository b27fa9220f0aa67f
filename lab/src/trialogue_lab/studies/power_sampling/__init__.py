"""Which samplers sample from a power of the model's distribution, and how much do they cost?

The target is p(x)^alpha, normalized over all complete texts x, where p(x) is the probability of x under the model
("power sampling"). Random models with three tokens are enumerated, so that output distributions, variances of weights
and power sums are exact. The power sum of a prefix is the sum of p(y)^alpha over its continuations y. The study
measures per-token temperature, the best possible rule that uses next-token distributions only, lookahead by sampled
completions (rollouts), and the Metropolis-Hastings chain of the source, both corrected and as released.

Longer texts come from Markov models (the next token depends on the last token only), whose powers are computed exactly
at any length by transfer matrices. On these models, importance sampling from 16 weighted texts, sequential Monte Carlo
and the chain are compared at about equal numbers of model calls.

Two sources seem to contradict each other. arXiv 2605.04542 states that local approximations need information about
suffixes. arXiv 2601.21590 approximates the power by scaled low temperature. Its scaling factor is the power sum, which
is information about suffixes. Both statements can therefore be true.

Deviations: The sources measure the accuracy of language models on reasoning tasks. Here the models are random, and
samplers are judged by their distance to the target. Only abstracts of the sources were available, except sections 4.1
to 4.3 of arXiv 2510.14901. `PowerMetropolis.released` describes how its released code is followed. Claims about chains
on texts of different lengths are about alpha = 2, because even the corrected chain is far from the target for alpha = 4
after 100 steps. Distances on Markov models compare one statistic of the texts, and are lower bounds of the total
variation distance. They include the error of a finite number of outputs, which is reported for exact samples.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="arXiv 2510.14901, 2602.10273, 2605.04542 and 2601.21590")
