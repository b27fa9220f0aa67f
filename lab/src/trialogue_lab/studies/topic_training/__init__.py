"""Does training find the optima of one layer on documents of topics, and in which order do its matrices move?

Section 2.1.5 of the thesis at the size printed, ten topics of ten words in documents of 100 to 150 words, and shorter
than there: embeddings (Figure 2.1), values (Figures 2.2, 2.5, 2.6, 2.10), attention by class (Tables 2.1 and 2.2), and
the two stages (Figures 2.4 and 2.9). One replication is a set of documents with all networks trained on it.

Deviations: the squared loss is the sum of equation 2.3, where the authors' code takes the mean over the vocabulary; the
L2 penalty has a gradient, which theirs lacks; masked positions are attended to, as the theory has it; topics are those
of words, where theirs are shifted by four, which is measured beside it. Four layers are trained on the same documents
in place of Wikipedia. Steps, where the thesis does not print them, are few: the preset `night` takes more.

At the rates of the source SGD hardly moves in these steps. There its code reads words behind an embedding of type and a
norm, so that a rate is not the same thing, and it says of no steps but that twenty passes over 10,000 documents are
likely too few. So claims about its rates are judged where a training has moved: to a loss below that of a constant by a
tenth of what Adam's is. Beside them SGD is trained at rates of ours, `SGD_RATES`, at which it does.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.1.5 and 2.1.6.1: Figures 2.1, 2.2, 2.4 to 2.6, 2.9, 2.10, Tables 2.1 and 2.2",
)
