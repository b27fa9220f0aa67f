"""Do the values of one layer form blocks by SGD at the printed rate, if weights begin as near zero as the printed ones?

Figures 2.2, 2.5 and 2.6 of the thesis show value matrices trained with the squared loss and SGD at a rate of 0.01. The
caption prints their size: 0.0055 and 0.0065 within topics, and a deviation of 0.0006 elsewhere, so that the weights
began at a deviation of at most 0.0006. `topic-training` starts from 0.02, the default of the library that the authors
use, and blocks of 0.0055 cannot be seen there. This study starts from 0.0006.

Deviations: the source prints no number of steps. Training stops after 700 steps, at which the blocks of a pilot had the
printed size. Panels that are trained by cross-entropy are left out: the released code scales a one-hot input by about
ten (an embedding of the token type and a norm follow it), so that its steps at a given rate are larger than here.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis sections 2.1.4 and 2.1.5: Figures 2.2, 2.5 and 2.6",
)
