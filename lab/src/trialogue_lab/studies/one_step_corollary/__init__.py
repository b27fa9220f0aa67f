"""Does one joint step beat many parallel ones in whole samplers, on instance after instance, and are decoders products?

Corollary 4.1.1 of the thesis, which `parallel-gap` simulates on two instances, on twelve, from 25 to 440 spins and up
to 100 steps, each with the least fields and couplings that its assumptions allow; the chain of bounds of its proof, as
printed and with the sixteenth that it needs. And Propositions 4.1.2 and 4.1.3 by construction: weights of a parallel
decoding transformer that make any map of states and any positive product kernel.

Deviations: the thesis names no instances and gives no weights; maps and kernels are random, of two and three tokens.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis sections 4.1.4, 4.3.8 and 4.3.9: Corollary 4.1.1, Propositions 4.1.2 and 4.1.3",
)
