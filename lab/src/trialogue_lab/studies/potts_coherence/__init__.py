"""How long can a chain with a finite window hold one stored pattern, and why does the plane hold it for ever?

Theorem 1.1 of the document on Potts chains: above temperature zero walls between patterns are inevitable, from lengths
on that equation 5 bounds. Everything about the chains is exact, by transfer matrices: walls, coherent runs, decay rates
and the weight of all sequences with a single wall, against length, temperature, window, energy and number of patterns.
Exact samples, and Gibbs sampling that begins in a stored pattern, show the walls. Controls: one pattern, where there is
nothing to wall off, and forbidden windows, which the theorem excludes.

Theorem 1.2: random autoregressive models as chains and back, for both readings of the constant in equation 9, and
temperature as in equation 10 beside that of every token. Corollary 1.2.1: how many patterns such models store, and how
fast they leave them.

Theorem 2.1, the contrast: spins on a torus, from an ordered start, beside Onsager's magnetisation and Peierls' bound;
as many spins on a ring lose their order at the same temperatures.

The document prints no numbers, and its proof counts a wall between any two patterns as a sequence of its own, which
those of patterns with tokens in common are not: what it says of walls is held against both kinds of patterns.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Document on the Potts chain: Theorems 1.1, 1.2 and 2.1, Corollary 1.2.1, equations 2 to 10",
)
