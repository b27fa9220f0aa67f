"""What does each decoding rule really sample when the output must obey a rule, and what does it cost?

A chat model answers questions under a regular expression (one of a few cities) and under a JSON schema (stars and tone
of a review). The rules allow few enough strings that the model's law restricted to them is known exactly, up to a
stated share left unexplored: the tree of allowed token sequences is explored and scored by the model. From the same
tree come the exact law of masked decoding (tokenwise rejection), of drawing by weight among several masked samples,
and of the first leaf of the value-guided walk; sequential Monte Carlo is simulated on the tree, and walks run on the
model itself show that they sample what was computed, and at what cost. Laws are of the strings: token sequences that
spell the same string count together. Every seed draws its own questions; one replication is one seed.

The thesis proves that tokenwise rejection distorts the law on a toy example and says that the value-guided walk is
there to fix it; that a chat model shows either, and how large it is, is asked here. Deviations: a rejected token is
masked out and not redrawn, which has the same law for fewer queries; the value-guided walk stops at its first leaf,
as in the thesis' experiments, where its theorem is about a uniform node of the path.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 3.1: Definitions 3.1.4 and 3.1.5, Proposition 3.1.2, Algorithms 1 and 2",
    kind="measure",
)
