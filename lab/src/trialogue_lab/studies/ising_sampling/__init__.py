"""How many steps take dependent and independent parallel updates from the smaller to the larger mode of an Ising model?

Figure 4.3 of the thesis: ten spins in a field h = 5, four of them coupled with J, all start down. Steps are counted
until the four are up, for k-Gibbs with k = 1 to 10 and for the independent parallel sampler, at most 1000. Beside the
simulated numbers stand the exact ones: on the number of up spins both samplers are Markov chains of five states, whose
hitting times are solved for without subtraction, also where they are 1e20.

The thesis does not print its couplings: what it says of "any J tried" is tried at J = 1, 2, 3, 4, 5, 6 and 8. Pairs are
unordered; where every pair is counted twice, J here is 2 J there, so that the couplings 2, 4, 6 and 8 are 1, 2, 3 and 4
of that reading. One replication is one repetition of the figure: ten chains in every cell.

The figure stands for Propositions 4.1.4 and 4.1.5, and lies outside of their Assumption 4.1.5: the fields add up to 20
inside the clique and to 30 outside, and no J below 50 is large enough. The study `parallel-gap` has settings within it.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 4.2.1.2: Figure 4.3; Definitions 4.1.10 and 4.1.11",
)
