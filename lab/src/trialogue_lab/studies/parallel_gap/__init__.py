"""Where does one joint block update reach the larger mode while independent parallel updates never do, and why?

Propositions 4.1.4 and 4.1.5 and Corollary 4.1.1 of the thesis, on ferromagnetic cliques that satisfy their assumptions.
k-Gibbs is in the larger mode after one step, and independent parallel updates stay near the other mode for M steps.
Exact numbers come from the Markov chain of the number of up spins, for cliques of any size. Simulated numbers come from
the samplers on whole states. The constants are the corrected ones, next to the printed ones. Proposition 4.1.5 is also
tested where its printed assumptions hold and its proof does not.

Propositions 4.1.2 and 4.1.3: a sampler that updates all positions independently given the state has product transition
distributions. A small bidirectional transformer is trained on single steps of k-Gibbs on a clique. Its transitions are
compared with those of the step and with the best product distribution, in KL and in total variation. As a control, the
same transformer is trained on steps of independent parallel updates.

Deviations: the corollary is tested on four instances, each with the smallest fields and couplings that it allows. The
two with 15,000 and 30,800 spins are computed but not simulated. The thesis does not train networks of this kind.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 4.1.2: Propositions 4.1.2 to 4.1.5, Corollary 4.1.1; section 4.3",
)
