"""Is the attention of a network informative if the network only copies its input?

Section 2.2.4.1 of the thesis (Figures 2.19 to 2.21) trains networks of one and four layers to predict the bracket at
each position from an input that contains it. This study measures how many brackets the networks copy, and how many they
still copy after their attention is made uniform. It also measures whether the attention of a layer seems to be
informative. The control is a network without a residual connection, which can only copy through attention.

Deviations: Training takes 200 updates on fresh prefixes of 28 brackets.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis section 2.2.4.1: Figures 2.19 to 2.21")
