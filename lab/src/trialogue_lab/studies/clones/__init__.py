"""Does a masked language model learn low-order interactions of its text before high-order ones?

Section 3 of 'A distributional simplicity bias in the learning dynamics of transformers'. Networks of factored attention
with n layers have conditionals with interactions of at most 2^(n-1) + 1 tokens. Networks of growing depth are trained
on a text, with each masked token in its own copy of the sequence. Sequences sampled from these networks, and from an
encoder, are clones of the text up to some order. Another encoder is then trained on the text, and its loss on every
clone is recorded. When it has learned all interactions of a clone, its loss on that clone stops falling.

The document does not specify the distribution of its chain. Metropolis sampling with the sum of raw scores as energy,
started from held-out text, is used as published, and Gibbs sampling in addition. The bound on the orders of a clone
holds only without layer norm, which the published networks have. Here, layer norm is a setting that only the preset
`paper` turns on. Encoders share their initial weights and differ in the order of the data, as published. Losses on
different clones have different minima. The study therefore compares the times at which losses stop falling.

The presets `default` and `night` are small. They have 1, 2 and 4 factored layers instead of 2, 4 and 6, no layer norm,
320 tokens instead of 10,000, sequences of 16 instead of 128, and other learning rates and optimizers than the source.
Results about clones refer to one network per depth and one sample from it. The published chains have not converged
after 70 sweeps (see R-hat in the table of chains). Five trainings cannot decide the claim `in-order`, because the
interval for five of five is 0.31 to 1 and contains the threshold of 0.8. The claim needs the 27 trainings of `night`
and `paper`. `night` is `default` with 27 new seeds.

The twin is a control without text. Its distribution has four-body energies and is small enough to enumerate. Its exact
truncations to two and three bodies are the clones, and an encoder is trained on it. The distribution that each sampler
produces from exact conditionals of k bodies is also computed.

The setting `text` is a file or folder in the working directory, or a corpus of the hub. The provenance of a result
contains the checksums of the files.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="A distributional simplicity bias in the learning dynamics of transformers: Figures 1, 3 and 4, Table 1, "
    "section A.3",
)
