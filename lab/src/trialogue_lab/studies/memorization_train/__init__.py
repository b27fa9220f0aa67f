"""How many associations does training make an attention-only transformer hold, beside what is proved it can?

The experiments of the document on memorization in attention-only transformers: networks trained on one random token for
every pair of tokens, and their accuracy against heads, the width of heads, that of the embedding and parameters, beside
the lower bound, the previous one, and the accuracies in print. The published curves against d_h and d were measured
with one map to d_h numbers, and one back, that all heads share; they are repeated so, and with the per-head values of
equation 1.

Deviations: every step is on all contexts, where the published ones are on 256 of 16,384 that were drawn; the accuracy
is that of the end, on all contexts, where theirs is the mean over the last hundred batches. Scores have no scale, and
embeddings start small. An MLP has no biases, so that its parameters are as many as those of heads; positions are added
before the shared map. Large and deep experiments are smaller than in print.

The preset `default` trains for 400 steps of Adam where the document has 4,096, and its trainings are not at their end:
in two dimensions 13 heads hold less than 9, in the mean of five trainings. What is missing to accuracies in print may
be missing steps; `paper` has as many as the document. Grades are ours, where the document has words, or numbers without
a tolerance: a line that explains more than 98 % of the variance is linear, within 0.05 is reached or flat, and within a
quarter is as good.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Memorization in attention-only transformers: section 5, appendix B, Experiments 1 to 6",
)
