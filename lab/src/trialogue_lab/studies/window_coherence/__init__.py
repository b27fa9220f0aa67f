"""How long does generated text stay in one stored pattern, depending on the window of the model?

Corollary 1.2.1 of the document on Potts chains states that an autoregressive model with a fixed window of previous
tokens cannot generate infinite coherent output. In the corpus, each sequence follows one of two periodic patterns, from
one of seven initial positions, without end and with noise. Different patterns and positions share short windows, and
noise makes longer windows ambiguous. Small transformers see the last 3 to 11 tokens, attend within a sliding window, or
attend to all tokens. With two layers, a sliding window gives a receptive field of layers x (window - 1) + 1 tokens.
Each network continues a pattern, and the tokens up to the first domain wall, a change to another pattern, are counted.

A model with a finite window is equivalent to a Potts chain, a distribution whose energy is a sum over windows. The
probability that its text stays in one pattern, and the rate at which this probability decays, are computed exactly, for
the networks and for the best model with each window. They are compared with the length in Theorem 1.1 from which walls
are likely, with the corpus, and with greedy decoding, to which the theorem does not apply.

The document measures nothing. This project chose the corpus, networks, windows and temperatures. A network that fails
to learn counts like the others, as one of six with sliding attention does.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Potts chains: Theorems 1.1 and 1.2, Corollary 1.2.1")
