"""How many steps do dependent and independent parallel updates need to reach the larger mode of an Ising model?

Figure 4.3 of the thesis has ten spins in a field h = 5. Four of them, the clique, are coupled with J. Chains start in
the smaller mode, with all spins down. Steps are counted, at most 1000, until the four coupled spins are up, which is
the region R_1 of the larger mode. The samplers are k-Gibbs, which updates blocks of k = 1 to 10 spins jointly, and
independent parallel updates. Simulated numbers of steps are compared with exact ones. Under both samplers, the number
of coupled spins that are up is a Markov chain with five states. Its hitting times are computed without subtractions,
which is accurate even for 1e20 steps.

The thesis does not print its couplings. Its statement about "any J tried" is tested at J = 1, 2, 3, 4, 5, 6 and 8.
Here, the energy counts each unordered pair once. If the thesis counts every pair twice, its couplings 1, 2, 3 and 4 are
the couplings 2, 4, 6 and 8 here. One replication is one repetition of the figure, with ten chains per cell.

The figure illustrates Propositions 4.1.4 and 4.1.5, but its setting violates their Assumption 4.1.5. The assumption
requires that the fields inside the clique, 20 in total, exceed the fields outside, 30 in total. It also requires that J
is larger than 50, the sum of all fields. The study `parallel-gap` has settings that satisfy the assumption.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis section 4.2.1.2: Figure 4.3; Definitions 4.1.10 and 4.1.11")
