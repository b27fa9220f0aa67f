"""Can attention that is balanced, or looks at everything alike, close brackets exactly at any length?

Section 2.2.2 of the thesis, by construction: whole networks in float64 for Theorem 2.2.1 (perfect balance, attention
random otherwise) and Corollary 2.2.1 (uniform attention in both layers), against the exact next-bracket law; the same
networks with their scores disturbed; and every step of Theorem 2.2.2 on networks of all kinds, without asymptotics.

Deviations: the ReLU network that reads the sums takes what the residual adds to their directions off first; a small
gain behind the norm keeps the state readable at depth 0, where rounding alone is normed; constants of Theorem 2.2.2 and
Lemma 2.2.1 are corrected.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.2.2: Theorems 2.2.1 and 2.2.2, Corollary 2.2.1, Lemma 2.2.1",
)
