"""Does a masked language model learn low-order interactions of its text before high-order ones?

This is the question of section 3 of 'A distributional simplicity bias in the learning dynamics of transformers'. A
network with n layers of factored attention can only learn interactions of at most 2^(n-1) + 1 tokens. Such networks of
increasing depth are trained on a text. Sequences are then sampled from each network. They are called a clone of the
text, and have its interactions up to the order of the network. A clone of all orders is sampled from a BERT encoder.
Another encoder, the followed encoder, is trained on the text, and its loss on every clone is recorded. Once it has
learned all interactions of a clone, its loss on that clone stops falling.

The source does not specify the distribution that its Markov chain samples from. As published, clones are sampled by
Metropolis updates whose energy is the negative sum of raw scores, starting from held-out text. Clones sampled by Gibbs
updates are a control. The bound on the orders of a clone holds only without layer norm, which the published networks
have. Here, only the preset `paper` has layer norm. Followed encoders share their initial weights and differ in the
order of the data, as published. Losses on different clones have different minima. The study therefore compares the
steps at which losses stop falling.

The presets `default` and `night` are small. They have 1, 2 and 4 factored layers instead of 2, 4 and 6, no layer norm,
320 tokens instead of 10,000, and sequences of 16 instead of 128. Learning rates and optimizers also differ from the
source. Results about clones refer to one network per depth and one sample from it. The published chains have not
converged after 70 sweeps (see R-hat in the table of chains). Five trainings cannot decide the claim `in-order`, because
the interval for five of five is 0.31 to 1, which contains the threshold of 0.8. `night` and `paper` have 27 trainings,
which can decide it. `night` is `default` with 27 new seeds.

The twin is a control without text. It is a distribution with four-body energies that is small enough to enumerate. Its
clones are computed exactly, by removing interactions of more than two or three tokens. An encoder is trained on samples
of the twin, and its loss on every clone is recorded. The study also computes the distribution that each Markov chain
samples from, if it uses exact conditionals with k-body interactions.

The setting `text` is a file or folder in the working directory, or a corpus of the hub. The provenance of a result
contains the checksums of the files.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="A distributional simplicity bias in the learning dynamics of transformers: Figures 1, 3 and 4, Table 1, "
    "section A.3",
)
