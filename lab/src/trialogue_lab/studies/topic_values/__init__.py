"""Does SGD at the printed rate form blocks in value matrices, if initial weights are as small as the printed entries?

Figures 2.2, 2.5 and 2.6 of the thesis show value matrices trained with the squared loss and SGD at a rate of 0.01. The
captions print the size of entries: 0.0055 and 0.0065 within topics, with a standard deviation of 0.0006 elsewhere. The
initial weights therefore had a standard deviation of at most 0.0006, as in this study. `topic-training` starts from a
standard deviation of 0.02, the default of the library that the authors use, which hides blocks of 0.0055.

Deviations: the source prints no number of steps. Training stops after 700 steps, when the blocks of a pilot had the
printed size. Panels trained by cross-entropy are left out. The released code adds an embedding of the token type to the
one-hot input and normalizes the sum. This scales the input by about ten, so that its steps are larger at the same rate.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis sections 2.1.4 and 2.1.5: Figures 2.2, 2.5 and 2.6")
