"""Which reveal order suits a trained masked network, and when in training does the order matter?

Small bidirectional transformers learn two tasks with masked tokens: Sudoku with 4 x 4 cells, and the addition of two
numbers with carries. In training, the number of masked tokens is uniform, and so is their set (masked diffusion). Each
masked token counts equally in the loss. At several training steps, the networks complete puzzles in five orders:
random, from left to right, and the three adaptive orders by confidence (top probability), entropy and margin
(difference of the two top probabilities). The tests reveal one or several tokens per pass. Claims are about temperature
0 unless they say otherwise, where the most probable token is revealed, so that samplers differ in the order only.

There are 288 Sudoku grids. A part of them is held out of training, and puzzles of these grids are tested. A puzzle
shows random cells of a grid, and has no other solution. Exchanging digits, rows or columns turns a training grid into
a held-out one, so that held-out grids are new but not unlike the others. Tested additions do not occur in training.
The sum is written with the most significant digit first, so that the order from left to right begins with the digit
that depends on all carries.

Sources: arXiv 2502.06768, of which the abstract was read, and one sentence that a public review of it quotes, and arXiv
2605.29123, of which the abstract was read. Their tables were not readable. The first source has puzzles with 9 x 9
cells, and both have larger networks.

Not tested: 9 x 9 cells and the quality of texts, which need large networks, the comparison with autoregressive
networks, and the training of PRISM (arXiv 2510.01384), which learns where to mask again.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="arXiv 2502.06768 and 2605.29123")
