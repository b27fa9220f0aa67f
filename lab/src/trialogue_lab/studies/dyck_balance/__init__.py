"""Do networks that violate balance more generalise worse to longer prefixes, by either definition of accuracy?

Figure 2.13 of the thesis says that the balance violation of networks with a minimal first layer correlates negatively
with their accuracy at lengths 400 to 500. The text defines accuracy by the likeliest closing bracket. The released
program counts positions where more than 0.8 of the probability of closing brackets is on the right one, and has a
violation of its own. `dyck-attention` has 40 networks, too few to decide. This study trains 240 and measures both
accuracies and both violations.

Deviations: 300 updates of 100 fresh strings, where the released program trains for epochs over 100,000 tokens; LN_C
with C = 1e-5.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.2.3.3: Figure 2.13",
)
