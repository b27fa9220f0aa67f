"""How many particles does sequential Monte Carlo need if the values of prefixes are perfect, and if they have errors?

Sequential Monte Carlo (SMC) extends several sequences (particles) token by token and resamples them by their values.
The value of a prefix is the expected outcome of its completions. Recent papers state criteria under which few particles
are enough. Here the number of particles is computed until the total variation distance between output and target is at
most 0.1. With perfect values, targets are products over positions, and the output distribution follows in closed form
for thousands of tokens. With errors, the first token decides the outcome, and the number of particles that chose each
token is an exactly solvable Markov chain. Bellman errors then have both signs: values are too high below one token and
too low below the other. On small random trees, SMC of the library is enumerated, and its error is compared with
action-level coverage and with the chi-square divergence of approximate from exact values. Other samplers stand next to
SMC: the first leaf of the value-guided walk, rejection that stops at the first impossible token, and best-of-n compared
with rejection by a threshold, on enumerated tables of scores.

Deviations: Of arXiv 2603.07887, 2602.01381 and 2507.12399 only abstracts and secondary summaries could be read. This
project chose the targets, the errors and the definitions of both criteria. Both families of targets are small enough
for exact computation, so that they show what can happen, not what happens on average with language models. The closed
forms hold for resampling after every token, and are compared with the sampler of the library on short sequences.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="arXiv 2603.07887, 2602.01381 and 2507.12399; thesis section 3.3.1 (Algorithm 2)"
)
