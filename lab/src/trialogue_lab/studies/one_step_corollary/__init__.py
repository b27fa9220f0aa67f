"""Does one joint step beat many parallel steps in simulations of many instances, and are parallel decoders products?

Corollary 4.1.1 of the thesis compares two samplers of an Ising model with a clique of coupled spins. One step that
resamples k spins jointly reaches the larger mode, and many steps that resample all spins independently do not. It is
simulated on twelve instances with 25 to 440 spins and up to 100 steps. (The study `parallel-gap` simulates two.) Each
instance has the smallest fields and couplings that the assumptions allow. The study also tests the chain of bounds of
the proof, as published and with the corrected factor of a sixteenth. Propositions 4.1.2 and 4.1.3 are tested by
construction, with weights of a parallel decoding transformer that compute any map of states and any positive product
kernel (independent next tokens given the state).

Deviations: The thesis names no instances and gives no weights. Maps and kernels are random, with two and three tokens.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Thesis sections 4.1.4, 4.3.8 and 4.3.9: Corollary 4.1.1, Propositions 4.1.2 and 4.1.3"
)
