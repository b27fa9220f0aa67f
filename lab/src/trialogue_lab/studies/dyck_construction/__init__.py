"""Can transformers with balanced or uniform attention predict closing brackets exactly at any length?

This is a test of section 2.2.2 of the thesis with constructed networks in float64. Theorem 2.2.1 is about attention
that is random but perfectly balanced: matched brackets cancel in the attention sums. Corollary 2.2.1 is about uniform
attention in both layers. The predictions of such networks are compared with the exact distribution of the next bracket.
The same networks are then tested with noise in their attention scores. Every step of Theorem 2.2.2 is evaluated on
random and constructed networks, without asymptotics.

Deviations: The ReLU network that reads the sums first subtracts the contribution of the residual connection. A small
gain after the norm keeps the state readable at depth 0, where the norm would otherwise only scale rounding errors. The
constants of Theorem 2.2.2 and Lemma 2.2.1 are corrected.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Thesis section 2.2.2: Theorems 2.2.1 and 2.2.2, Corollary 2.2.1, Lemma 2.2.1"
)
