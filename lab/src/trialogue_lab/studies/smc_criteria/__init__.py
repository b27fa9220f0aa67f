"""How many particles does sequential Monte Carlo need if the values of prefixes are perfect, and if they have errors?

Sequential Monte Carlo (SMC) extends several sequences (particles) token by token and resamples them by their values.
The value of a prefix is the expected outcome of its completions. Recent papers state criteria under which few particles
are enough. This study computes the number of particles for which the total variation distance between output and target
is at most 0.1.

With perfect values, targets are products over positions, and the output distribution has a closed form for thousands of
tokens. With errors, the first token decides the outcome. The number of particles that chose each first token is then a
Markov chain, which is solved exactly. Its Bellman errors have both signs: values are too high below one first token and
too low below the other one. On small random trees, the SMC implementation of the library is enumerated. Its error is
compared with two criteria: action-level coverage, and the chi-square divergence of approximate from exact values.

SMC is also compared with other samplers: the first leaf of the value-guided walk, and rejection that stops at the first
impossible token. Best-of-n is compared with rejection by a threshold, on enumerated tables of scores.

Deviations: Of arXiv 2603.07887, 2602.01381 and 2507.12399, only abstracts and secondary summaries were available. This
project chose the targets, the errors and the definitions of both criteria. Both families of targets are small enough
for exact computation. They therefore show what can happen, not what happens on average with language models. The closed
forms hold for resampling after every token, and are compared with the sampler of the library on short sequences.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="arXiv 2603.07887, 2602.01381 and 2507.12399; thesis section 3.3.1 (Algorithm 2)"
)
