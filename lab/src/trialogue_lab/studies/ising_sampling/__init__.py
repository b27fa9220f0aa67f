"""How many steps take dependent and independent parallel updates from the smaller to the larger mode of an Ising model?

Figure 4.3 of the thesis: ten spins in a field h = 5, four of them coupled with J, start in the state with all spins
down. Steps are counted until the four coupled spins are up, at most 1000. The samplers are k-Gibbs with k = 1 to 10 and
independent parallel updates. Simulated numbers are compared with exact ones. The number of coupled spins that are up is
a Markov chain with five states under both samplers. Its hitting times are solved for without subtraction, which is
accurate even for 1e20 steps.

The thesis does not print its couplings. Its statement about "any J tried" is tested at J = 1, 2, 3, 4, 5, 6 and 8. The
energy counts each unordered pair once. If it counts every pair twice, J here is 2 J there, so that the couplings 2, 4,
6 and 8 are 1, 2, 3 and 4 in that interpretation. One replication is one repetition of the figure, with ten chains per
cell.

The figure illustrates Propositions 4.1.4 and 4.1.5, but its setting violates their Assumption 4.1.5. The fields add up
to 20 inside the clique and to 30 outside, and J would have to be larger than 50. The study `parallel-gap` has settings
that satisfy the assumption.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 4.2.1.2: Figure 4.3; Definitions 4.1.10 and 4.1.11",
)
