"""Do patterns last where it is cold, in texts of random models, and in the plane where there are many of them?

The rest of the document on Potts chains, beside `potts-coherence`: what P(no wall) tends to at a fixed length as the
temperature falls; how long texts of random bigram and trigram models follow a pattern of the models' own (Corollary
1.2.1), simulated; and whether the plane keeps one of N patterns at some temperature, whatever N is (Theorem 2.1), and
up to E_min / log 3 (its proof), by chains from one pattern everywhere.

Deviations: the document fixes no models and no N, and every seed has the same random models; the torus has
16 x 16 sites, on which order is lost for good within the sweeps only where it is not metastable.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Document on Potts chains: Theorem 1.1, Corollary 1.2.1, Theorem 2.1",
)
