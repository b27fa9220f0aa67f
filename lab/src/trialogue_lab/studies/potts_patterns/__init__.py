"""Do patterns last at low temperature, in texts of random models, and in the plane with many patterns?

This study covers the parts of the document on Potts chains that `potts-coherence` leaves out. It computes the limit of
P(no wall) at a fixed length as the temperature falls. It simulates how long texts of random bigram and trigram models
follow a pattern of the model (Corollary 1.2.1). It simulates whether the plane keeps one of N patterns at some
temperature, for any N (Theorem 2.1), and up to E_min / log 3 (its proof). These chains start with one pattern
everywhere.

Deviations: the document specifies neither models nor N. All seeds have the same random models. The torus has 16 x 16
sites. On it, order that is metastable can last longer than the sweeps.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Document on Potts chains: Theorem 1.1, Corollary 1.2.1, Theorem 2.1",
)
