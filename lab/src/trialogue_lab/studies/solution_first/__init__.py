"""What does a generator without memory pay, or get wrong, where a solution has to come before its problem?

The rest of the post "Theoretical Limitations of Autoregressive Models", beside `type-signature`: a number that ends
with a stop token, Sudoku, twenty questions by an index of what fits, random activations, the digits of the product
itself, primes without coins as their number of digits grows, and the bound on the overlap over many more vectors.
Laws are computed by enumeration, or by the chain rule over drawn sequences; looks, trials and products are counted.

Deviations: Sudoku has 4 x 4 cells, the post says no size; numbers with a stop token have one to four digits and not
six, and the digits of a product are found by trial, which the post leaves open.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source='Post "Theoretical Limitations of Autoregressive Models": sections on randomized tasks, games and ways '
    "around, appendix",
)
