"""Does training find the optima of one attention layer on documents of topics, and in which order do matrices grow?

Section 2.1.5 of the thesis at its printed size: ten topics of ten words, documents of 100 to 150 words. Trainings are
shorter than in the thesis. The study covers embeddings (Figure 2.1), values (Figures 2.2, 2.5, 2.6 and 2.10), attention
by class of words (Tables 2.1 and 2.2), and the two stages of training (Figures 2.4 and 2.9). One replication is a set
of documents with all networks trained on it.

Deviations: the squared loss is the sum of equation 2.3, and the authors' code takes the mean over the vocabulary. The
L2 penalty has a gradient here, and none in their code. Masked positions are attended to, as in the theory. Topics are
topics of words, and their code shifts them by four, which is also measured. The network of four layers is trained on
the same documents instead of Wikipedia. Where the thesis prints no number of steps, there are few. The preset `night`
takes more.

At the learning rates of the source, SGD hardly changes the matrices in this number of steps. The authors' code adds an
embedding of token types and a norm to the input, so that their rates are not comparable. It only says that twenty
passes over 10,000 documents are likely too few. Claims about these rates are therefore tested only if the training has
made progress: its loss must fall below the loss of a constant prediction by at least a tenth of the fall under Adam.
SGD is also trained at the higher rates `SGD_RATES`, at which it makes progress.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.1.5 and 2.1.6.1: Figures 2.1, 2.2, 2.4 to 2.6, 2.9, 2.10, Tables 2.1 and 2.2",
)
