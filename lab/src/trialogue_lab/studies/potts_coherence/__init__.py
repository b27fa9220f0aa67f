"""How long does a chain with a finite window stay in one stored pattern, and does the plane stay in it forever?

A Potts chain is a distribution over token sequences whose energy is a sum over windows of successive tokens. Windows
that follow a stored pattern have energy zero. A domain wall is a position where a sequence changes from one pattern to
another. Theorem 1.1 of the document on Potts chains states that walls are inevitable above temperature zero, from a
length that equation 5 bounds. The probabilities of walls, the length of text without a wall, and the weight of all
sequences with a single wall are computed exactly by transfer matrices, for several lengths, temperatures, windows,
energies and numbers of patterns. Exact samples, and Gibbs sampling that starts from a stored pattern, also show the
walls. There are two controls. A single pattern has no walls, and the theorem excludes walls of infinite energy.

Theorem 1.2 maps random autoregressive models to chains and back. The study tests both interpretations of the constant
in equation 9, and compares the temperature of equation 10 with a temperature for each token. For Corollary 1.2.1, it
counts the patterns that such models store, and computes how fast the models leave them.

Theorem 2.1 states that two dimensions differ. Ising spins on a square lattice start from an ordered state, and their
magnetization is compared with Onsager's exact value and the bound by Peierls' argument. The same number of spins on a
ring loses its order at the same temperatures.

The document prints no numbers. Its proof counts a wall between any two patterns as a separate sequence, which fails for
patterns that share tokens. Statements about walls are therefore tested on both kinds of patterns.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Document on the Potts chain: Theorems 1.1, 1.2 and 2.1, Corollary 1.2.1, equations 2 to 10",
)
