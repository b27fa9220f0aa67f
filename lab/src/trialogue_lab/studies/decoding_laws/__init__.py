"""How far is the output of each common decoding method from the distribution that its users expect?

Small constraints on small models: ten families of constraints, from one that the first token decides to one that the
last token decides, at two lengths of up to eight tokens each. The models are Markov chains with random next-token
distributions. Masked decoding is also tested on uniform models. Output distributions and expected model calls are
computed exactly by enumerating the random choices of each sampler, or in closed form for the best of n and for a
weighted draw from n masked outputs. Only the models are random. Model calls are those of samplers without a cache.

Outputs that violate the constraint and runs without output count in the distance. Masked decoding always produces a
valid output here and backtracking mostly does not, so that claims that compare them compare failures with bias. The
same holds for backtracking with greedy and with sampled redo.

Rejection checks finished outputs, here and in the claim `at-the-cost-of-rejection`. The value-guided walk with momentum
1 and a verifier is rejection that starts again at the first refusal. It masks the first token and calls the model at
every node on the way back up. The difference between its calls and those of rejection is the saving by early stopping
minus these calls.

All claims are ours. The expected distribution is stated for each method: the model conditioned on the constraint; the
same with p(x)^(1/T) or with the model at temperature T; the same restricted to tokens within the truncation; or the
most probable output. Verifiers depend on the constraint and the length only and are exact on prefixes. Values are exact
or wrong by a factor of two. The hidden string of Theorem 3.1.1, for which such a verifier does not help, is listed last
and excluded from all means.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="ours; decoding rules of thesis Definitions 3.1.4 and 3.1.5 and Algorithms 1 and 2"
)
