"""Which distribution does each decoding method sample from under a constraint, and at what cost?

A chat model answers questions under a regular expression (one of five cities) and under a JSON schema (stars and tone
of a review). The constraints allow only few strings. All allowed token sequences are enumerated as a tree and scored by
the model. The model's distribution given the constraint is therefore known exactly, up to the probability of unexplored
sequences, which is reported.

The tree also gives the exact output distributions of masked decoding (tokenwise rejection) and of weighted masked
decoding, which selects one of several masked outputs by its importance weight. The same holds for the value-guided
walk, which stops at its first complete output. Sequential Monte Carlo is simulated on the tree. Samplers that run on
the model itself confirm the computed distributions and measure the cost. Distributions are over strings: probabilities
of token sequences with the same text are added. Every seed selects its own questions and is one replication.

The thesis proves on a toy example that tokenwise rejection distorts the distribution, and states that the value-guided
walk corrects it. This study measures both on a chat model. There are two deviations. A rejected token is masked and not
sampled again, which gives the same distribution with fewer model calls. The value-guided walk stops at its first leaf,
as in the experiments of the thesis, while the theorem is about a uniformly random node of the path.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 3.1: Definitions 3.1.4 and 3.1.5, Proposition 3.1.2, Algorithms 1 and 2",
    kind="measure",
)
