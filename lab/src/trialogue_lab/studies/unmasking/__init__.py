"""Which distribution does a masked model sample from, if it reveals a sequence in a few passes?

Papers about masked diffusion disagree on the order, the number and the correction of revealed tokens. Here all
distributions are small enough to enumerate, so the output distribution of every sampler is exact. The distributions are
Ising cliques and chains, Potts chains, bracket strings, hidden Markov models and random tables, with two to four tokens
and four to eight positions. Each seed draws one instance of each. The conditional distributions that a sampler receives
are the true ones, or have normal noise in their logits. The noise of an instance is fixed: it depends on the revealed
tokens and on the position, so that noisy conditionals belong to no joint distribution.

The Kullback-Leibler divergence is that from the true distribution to the sampler's. For a random order, the divergence
of each order (averaged over the orders) and the divergence of the mixture of all orders are different numbers. At
temperature 0, an output distribution is a single text, so that only its total variation is finite. Margin, confidence
and entropy give the same order for two tokens, so that they are compared on distributions with more. Conditionals after
an impossible context are undefined, and are set to the uniform distribution. With a fixed strength of remasking, the
number of masked tokens grows with the number of passes.

Sources: arXiv 2603.01367 (DUEL), 2511.04647, 2505.22618 (Fast-dLLM), 2604.00375 and 2503.00307 (ReMDM), of which the
abstracts were read, and of Fast-dLLM Theorem 1. The identity of arXiv 2511.04647 is taken from a formalisation. The
schedule of arXiv 2602.20126 was not readable: random sizes are those of masked diffusion, our interpretation.

Not tested: puzzles with 9 x 9 cells and the quality of texts, which need large models, and the training of PRISM (arXiv
2510.01384), which learns where to mask again. Trained networks are the subject of other studies.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="arXiv 2603.01367, 2511.04647, 2505.22618, 2604.00375 and 2503.00307",
)
