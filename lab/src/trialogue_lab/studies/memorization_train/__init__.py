"""How many associations does a trained attention-only transformer store, compared with the proven lower bound?

An association is a pair of tokens and one random token that the network must predict after it. The study replicates the
experiments of the document on memorization in attention-only transformers. Accuracy is measured as a function of the
number of heads, the head width d_h, the embedding width d and the number of parameters. It is compared with the lower
bound, with the previous bound and with the published accuracies. For the published curves in d_h and d, all heads
shared one value map to d_h numbers and one map back. The study repeats these experiments with shared maps and with a
separate value map per head (equation 1).

Deviations: Every training step uses all contexts. The published steps use batches of 256 out of 16,384 sampled
contexts. Accuracy is measured at the end of training on all contexts. The published accuracy is the mean over the last
hundred batches. Attention scores are not scaled, and initial embeddings are small. The MLP has no biases, so that it
has exactly as many parameters as the heads that it replaces. Positions are added before the shared map. The large and
the deep experiments are smaller than the published ones.

The preset `default` trains for 400 steps of Adam, and the document trains for 4,096 steps. Training has not converged
after 400 steps. In two dimensions, for example, 13 heads store fewer associations than 9 heads on average over five
trainings. A gap to the published accuracies may therefore be due to fewer steps. The preset `paper` trains for as many
steps as the document. Where the document gives words, or numbers without a tolerance, the thresholds are ours. "Linear"
means that a line explains more than 98 % of the variance. "Reached" and "flat" mean within 0.05, and "as good" means
within a quarter.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Memorization in attention-only transformers: section 5, appendix B, Experiments 1 to 6"
)
