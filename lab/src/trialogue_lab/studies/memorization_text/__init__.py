"""What does an attention-only transformer need to store the S-gram distribution of a text, compared with a table?

A context is a sequence of S tokens. The targets are the next-token distributions after the most frequent contexts of a
text, weighted by how often the contexts occur. Networks with computed weights store all distributions exactly, or as
many of the most likely ones as they have features (dimensions of the joint output of the heads; Theorem 1), or
approximate all by ridge regression. They are compared with an n-gram table of as many bytes, with a network of the same
shape that is trained on the text, and with a transformer of as many parameters. The cost of a narrow embedding is
reported separately, as the divergence of the nearest encoder, a table of logits of limited rank. All methods are also
evaluated on held-out text.

One replication is one sample of the text, with its own rows, random heads, initial weights and batches.

Deviations: The document uses no text. The distributions are those of a sample, and 0.01 is added to every count, so
that no probability is zero. Network weights are counted as float32. A table needs two bytes per token, four per count
and four per context for the start of its counts. It also contains the shorter contexts, to which it backs off.

The setting `text` names a corpus of the hub, a file or a folder. A file or folder of that name in the working directory
takes precedence. The provenance of a result contains checksums of the files.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Memorization in attention-only transformers: Proposition 1, Theorem 1, equations 13 and 14",
)
