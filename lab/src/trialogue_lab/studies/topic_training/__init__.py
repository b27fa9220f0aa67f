"""Does training find the optima of one attention layer on documents of topics, and in which order do matrices grow?

The study repeats section 2.1.5 of the thesis with its printed sizes: ten topics of ten words, and documents of 100 to
150 words. Trainings are shorter than in the thesis. The study covers embeddings (Figure 2.1), values (Figures 2.2, 2.5,
2.6 and 2.10), attention by class of words (Tables 2.1 and 2.2), and the two stages of training (Figures 2.4 and 2.9).
One replication is a set of documents with all networks trained on it.

Deviations: the squared loss is the sum of equation 2.3, while the authors' code takes the mean over the vocabulary. The
L2 penalty has a gradient here, and none in their code. Masked positions receive attention, as in the theory. The
authors' analysis shifts the topics of words by four, which is measured as a variant. The network of four layers is
trained on the same documents instead of Wikipedia. If the thesis prints no number of steps, a small number is used,
which the preset `night` increases.

At the learning rates of the source, SGD hardly changes the matrices in this number of steps. The authors' code adds an
embedding of token types to the input and normalizes the sum, so that their rates are not comparable. It states only
that twenty passes over 10,000 documents are likely too few. Claims about these rates are therefore tested only if the
training has made progress: its loss must fall below the loss of a constant prediction by at least a tenth of the fall
under Adam. SGD is also trained at the higher rates `SGD_RATES`, at which it makes progress.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.1.5 and 2.1.6.1: Figures 2.1, 2.2, 2.4 to 2.6, 2.9, 2.10, Tables 2.1 and 2.2",
)
