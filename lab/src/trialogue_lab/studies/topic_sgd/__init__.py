"""Does SGD at the printed rates learn attention to topics, if inputs are as large as in the released code?

Table 2.1 of the thesis has two rows for SGD, at rates of 0.01 and 0.03, and Figures 2.5 and 2.6 show value matrices
trained by cross-entropy and SGD. In `topic-training`, SGD at these rates hardly moves, so that the claims are not
tested. The released code normalizes its one-hot inputs of 104 entries, which makes the entry of a word about ten times
as large. Its program trains for at most 20 passes over 10,000 documents. This study uses both.

Multiplying the input by s is the same as multiplying the initial weights by s and the learning rate by the square of s.
The study does the latter.

Deviations: The small negative entries of a normalized input and the embedding of token types are left out. The rate of
the biases is multiplied too. Masked positions receive attention, as in the theory. Training does not stop early. The
penalty of Figure 2.2 is left out, because it has no gradient in the released code.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis section 2.1.5: Table 2.1, Figures 2.5 and 2.6")
