"""How long does text that a model writes stay in one stored pattern, against the window the model sees?

Corollary 1.2.1 of the document on Potts chains: an autoregressive model with a fixed window cannot generate infinite
coherent output. The corpus is sequences each of which follows one of two stored patterns, in one of seven phases, for
ever, but for noise; short windows are shared by patterns and phases, and noise makes longer ones look like others.
Small transformers see the last 3 to 11 tokens, or attend within a window that two blocks make a receptive field of
layers x (window - 1) + 1 tokens, or to everything; each continues a pattern, and the tokens up to the first domain wall
are counted.

What a model with a finite window writes is a Potts chain, whose survival in one pattern and its long-run rate are
computed exactly, for the networks and for the best model with each window; beside them stand the crossing length of
Theorem 1.1, greedy decoding, where a wall has an infinite energy and the theorem does not hold, and the corpus itself.

The document measures nothing: corpus, networks, windows and temperatures are ours. A network that did not learn is a
training like the others, as one of six with sliding attention is.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Potts chains: Theorems 1.1 and 1.2, Corollary 1.2.1")
