"""What does each decoding method sample when the output must satisfy a constraint, and at what cost?

A chat model answers questions under a regular expression (one of five cities) and under a JSON schema (stars and tone
of a review). The constraints allow so few strings that the conditional distribution of the model is known exactly, up
to an unexplored share that is reported: the tree of allowed token sequences is explored and scored by the model. The
same tree gives the exact distributions of masked decoding (tokenwise rejection), of a weighted draw from several masked
outputs, and of the first leaf of the value-guided walk. Sequential Monte Carlo is simulated on the tree. Samplers that
run on the model itself confirm the computed distributions and measure the cost. Distributions are over strings: token
sequences that spell the same string count together. Every seed selects its own questions and is one replication.

The thesis proves on a toy example that tokenwise rejection distorts the distribution, and states that the value-guided
walk corrects it. This study measures both on a chat model. Deviations: a rejected token is masked and not sampled
again, which gives the same distribution with fewer model calls. The value-guided walk stops at its first leaf, as in
the experiments of the thesis, while the theorem is about a uniformly random node of the path.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 3.1: Definitions 3.1.4 and 3.1.5, Proposition 3.1.2, Algorithms 1 and 2",
    kind="measure",
)
