"""Do patterns last at low temperature, in texts of random models, and in the plane with many patterns?

This study covers the parts of the document on Potts chains that `potts-coherence` leaves out. A Potts chain is a
distribution over token sequences that favors stored patterns, and a domain wall is a position where a sequence changes
to another pattern. The study computes the limit of the probability of no wall at a fixed length as the temperature
falls. It simulates how long texts of random bigram and trigram models follow a pattern of the model (Corollary 1.2.1).
On a square lattice with periodic boundaries, it simulates whether a Potts model whose sites all start in the same of N
states keeps this state. By Theorem 2.1, the state is kept at some temperature for every N. By its proof, it is kept at
every temperature up to E_min / log 3, where E_min is the smallest energy of two different neighbors.

Deviations: the document specifies neither models nor N. All seeds have the same random models. The lattice has 16 x 16
sites instead of an infinite plane, so that metastable order can last longer than the sweeps.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Document on Potts chains: Theorem 1.1, Corollary 1.2.1, Theorem 2.1"
)
