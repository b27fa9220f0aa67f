"""How far is the output of each common decoding method from the distribution that its users expect?

The study uses small constraints and small models. There are ten families of constraints at two lengths of up to eight
tokens. In the first family, the first token decides whether an output is valid. In the last ones, only the last token
does. The models are Markov chains with random next-token distributions. Masked decoding is also tested on uniform
models. Output distributions and expected model calls are computed exactly, by enumerating the random choices of each
sampler. Best-of-n and weighted masked decoding have closed forms. Model calls are counted without a cache.

The expected distribution is stated for each method. For most methods, it is the model conditioned on the constraint.
For methods with a temperature T, it is proportional to p(x)^(1/T) on valid outputs, or it is the conditioned model at
temperature T. For methods with truncation, it is restricted to tokens within the truncation. For greedy methods, it is
the most probable output.

Invalid outputs and runs without output count in the distance. Masked decoding always produces a valid output here, and
backtracking mostly does not. Claims that compare them therefore compare failures with bias. The same holds for
backtracking with greedy and with sampled redo.

Rejection sampling checks complete outputs, here and in the claim `at-the-cost-of-rejection`. The value-guided walk with
momentum 1 and a verifier is rejection sampling that restarts at the first rejected prefix. It masks the first token,
and calls the model at every node on the way back to the root. Early stopping saves model calls, and the way back adds
some.

All claims are ours. Verifiers depend only on the constraint and the length, and are exact on prefixes. Values are exact
or wrong by a factor of two. The hidden string of Theorem 3.1.1, for which such a verifier does not help, is listed last
and excluded from all means.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="ours; decoding rules of thesis Definitions 3.1.4 and 3.1.5 and Algorithms 1 and 2"
)
