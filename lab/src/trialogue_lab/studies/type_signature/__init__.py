"""Which distributions are easy to sample but hard to generate token by token, and do hidden tokens help?

The post "Theoretical Limitations of Autoregressive Models" considers tuples of two random primes and their product.
Every digit of [p, q, pq] is easy to generate. An exact generator of [pq, p, q] is a factoring algorithm. The study
computes distributions, reductions, bounds and work-arounds by enumeration, and counts the cost of a digit as the primes
grow.

Small transformers are also trained on both orders with the same number of tuples, and on the hard order with p and q in
a hidden stream before it. With the hidden stream, sequences are half as long again, so that more is computed per tuple.
The sizes are far below those where factoring is hard for a computer. Networks therefore show difficulties of learning,
and not of computing. This part is not in the post.

Deviations: The boxed claims of the post are lost in its extraction, and Claims 1 to 3 are reconstructed from its text.
Tuples are digits of fixed width without commas and brackets. The post assumes that factoring is hard, and the study
counts the costs of two factoring routines.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source='Post "Theoretical Limitations of Autoregressive Models": all sections, footnotes 1 to 4, appendix',
)
