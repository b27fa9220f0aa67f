"""Do networks that violate balance more make more errors on longer bracket strings?

Networks are trained to predict closing brackets. A network is balanced if matched brackets cancel in its attention
sums. According to Figure 2.13 of the thesis, the balance violation of networks with a minimal first layer correlates
negatively with their accuracy at lengths 400 to 500. There are two definitions of the accuracy. The text of the thesis
counts a closing bracket as correct if it is the most probable one. The released program counts positions at which more
than 0.8 of the probability of closing brackets is on the correct one. It also defines the violation differently.
`dyck-attention` trains 40 networks, which are too few to decide the claim. This study trains 240 networks, and measures
both accuracies and both violations.

Deviations: Each network takes 300 updates of 100 fresh strings. The released program trains for epochs over 100,000
tokens. LN_C has C = 1e-5.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis section 2.2.3.3: Figure 2.13")
