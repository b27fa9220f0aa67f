"""Where does one joint step of a block reach the larger mode while independent parallel updates never do, and why?

Propositions 4.1.4 and 4.1.5 and Corollary 4.1.1 of the thesis, on ferromagnetic cliques that meet their assumptions:
k-Gibbs is in the larger mode after one step, independent parallel updates stay around the other one for M steps. Exact
numbers come from the chain of the number of up spins, at any size; simulated ones run the samplers on whole states. The
constants are the corrected ones, with those in print beside them, and Proposition 4.1.5 is also tried where its
assumptions, as printed, hold and its proof does not.

Propositions 4.1.2 and 4.1.3: what draws every position by itself given the state has products as transitions. A small
bidirectional transformer is trained on single steps of k-Gibbs on a clique and held against the step's own law, beside
the best product law, in KL and in total variation; trained on steps of independent parallel updates it is a control.

Deviations: the corollary is tried on four instances, each with the least fields and couplings that it allows; the two
of 15,000 and 30,800 spins are computed and not simulated. The thesis trains no networks of this kind: theirs are ours.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 4.1.2: Propositions 4.1.2 to 4.1.5, Corollary 4.1.1; section 4.3",
)
