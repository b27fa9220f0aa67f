"""What does it cost to keep the S-gram law of a text in an attention-only transformer, and what would a table need?

The construction of the document on memorization in attention-only transformers on the laws of real text: of the next
token after the most frequent contexts of S tokens, weighed by how often they come. Networks hold all of them, or as
many of the likeliest as they have features (Theorem 1, with its bounds), or all by ridge regression; beside them stand
an n-gram table of as many bytes, a network of the same shape that was trained on the text, and a transformer of as many
parameters. What the width of the embeddings costs any network is reported apart, as the distance of the nearest
encoder. Held-out text is asked too.

A sample of the text is one replication: rows of its own, heads, initial weights and batches of its own.

Deviations: the document has no text. Laws are those of a sample, with 0.01 added to every count so that none is zero.
Bytes are those of float32 weights; a table takes two bytes for a token, four for a count, and four for the place where
the counts of a context begin, and falls back on shorter contexts, which it holds too.

The setting `text` names a corpus of the hub, or a file or folder, which goes first where the run begins; the provenance
of a result names the sums of what was read.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Memorization in attention-only transformers: Proposition 1, Theorem 1, equations 13 and 14",
)
