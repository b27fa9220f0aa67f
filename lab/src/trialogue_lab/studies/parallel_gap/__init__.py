"""Where does one joint block update reach the larger mode while independent parallel updates never do, and why?

Propositions 4.1.4 and 4.1.5 and Corollary 4.1.1 of the thesis are about Ising models with a clique, a set of spins with
equal positive couplings. In the larger mode, all of its spins point up. k-Gibbs resamples k random spins jointly, and
is in the larger mode after one step. Independent parallel updates resample all spins independently, and stay near the
other mode for M steps. Exact numbers come from the Markov chain of the number of up spins, for cliques of any size.
Simulated numbers come from the samplers on whole states. The constants are the corrected ones, next to the printed
ones. Proposition 4.1.5 is also tested where its printed assumptions hold and its proof does not.

By Propositions 4.1.2 and 4.1.3, updates that are independent given the state have product transition distributions. A
small bidirectional transformer is trained on single steps of k-Gibbs on a clique. Its transitions are compared with the
steps and with the best product distribution, in KL and in total variation. As a control, the same transformer is
trained on steps of independent parallel updates.

Deviations: the corollary is tested on four instances, each with the smallest fields and couplings that it allows. The
two with 15,000 and 30,800 spins are computed but not simulated. The thesis does not train networks of this kind.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Thesis section 4.1.2: Propositions 4.1.2 to 4.1.5, Corollary 4.1.1; section 4.3"
)
