"""What does a generator without memory pay, or get wrong, if a problem has to be written before its solution?

The study tests the statements of the post "Theoretical Limitations of Autoregressive Models" that the study
`type-signature` does not test. They are about numbers that end with a stop token, Sudoku, and twenty questions with an
index of the objects that fit. Others are about random hidden activations, the digits of a product, and primes without
random bits as their number of digits grows. The bound on the overlap is tested on many more vectors. Distributions are
computed by enumeration, or by the chain rule over sampled sequences. Look-ups, trials and products are counted.

Deviations: Sudoku puzzles have 4 x 4 cells, and the post gives no size. Numbers with a stop token have one to four
digits instead of six. The digits of a product are found by trial, and the post does not specify the method.

The post also mentions mystery novels, in which clues come before the culprit who explains them. This has no claim,
because the post calls it possible and names no cost. Clues that follow from a choice that is revealed last are measured
by twenty questions, where the answers follow from an object that was fixed at the start.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source='Post "Theoretical Limitations of Autoregressive Models": sections on randomized tasks, games and ways '
    "around, appendix",
)
