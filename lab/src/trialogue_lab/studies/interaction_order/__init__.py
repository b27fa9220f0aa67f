"""Does a stack of factored attention learn two bodies, then three, then four, and the last layer before the first?

Laws of four bodies on five tokens of three values are trained on whole, without samples: one, two and three layers, by
the document's stochastic gradient descent less its noise. Their final losses stand beside the best that conditionals of
two and three bodies in product form can do, found by minimising exactly, and beside the entropy of the law. Each law
has networks of its own; laws whose bounds are not 0.05 nats apart have no steps to stand on, and others are drawn in
their place, before anything is trained. One layer, factored or of standard attention, is also trained on laws of two
bodies; the orders that an architecture can have are read off the spectra of random networks. A law of the size that the
document uses, 20 tokens of 10 values, is trained on 25,600 samples of its heat bath: for the figure, not for claims.

Deviations: the document prints no scale of energies, initial weights, epochs or schedule. Tensors have entries
Bernoulli(0.8) less 0.8 at distinct sites, at rank 20, and energies a deviation of 2: of the printed ones almost all is
two-body, and chains freeze. Gradients are clipped at a norm of 0.1, without which squares diverge.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Distributional simplicity bias: section 2, equations 1 to 6, Figure 2",
)
