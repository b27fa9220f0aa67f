"""Does factored attention learn two-body, three-body and four-body interactions in turn, and its last layer first?

Networks with one, two and three layers are trained on four-body distributions over five tokens with three values. The
training uses the full distribution instead of samples, and otherwise the gradient descent of the document. The final
losses are compared with the entropy of the distribution. They are also compared with the lowest losses of predictors
that are products of functions of two or three tokens, which are minimized exactly. Each distribution has its own
networks. Before any training, distributions are sampled again until their loss bounds differ by at least 0.05 nats.

One layer of factored or standard attention is also trained on two-body distributions. The interaction orders of an
architecture are computed from the logits of random networks in all contexts. For a figure without a claim, networks are
trained on a distribution of the document's size, with 20 tokens of 10 values and 25,600 Gibbs samples.

Deviations: The document prints no energy scale, initial weights, epochs or schedule. The entries of the tensors are
Bernoulli(0.8) minus 0.8 at distinct sites, with rank 20, and the energies have a standard deviation of 2. With the
printed entries, almost the entire energy is two-body and chains freeze. Gradients are clipped at a norm of 0.1, because
the squares diverge otherwise.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Distributional simplicity bias: section 2, equations 1 to 6, Figure 2"
)
