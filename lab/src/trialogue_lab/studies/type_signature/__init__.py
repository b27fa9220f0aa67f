"""Which laws are easy to sample and hard to emit token by token, and what does a place to hide one's work change?

The post "Theoretical Limitations of Autoregressive Models" on tuples of two random primes and their product: written
[p, q, pq] every digit is easy, written [pq, p, q] a generator of the exact law is a factoring algorithm. Laws,
reductions, bounds and work-arounds are computed by enumeration; what a digit costs is counted as the primes grow.

Small transformers are then trained on both orders with the same number of tuples, and on the hard order with p and q
in a hidden stream before it (whose sequences are half as long again, so that it also computes more per tuple). The
sizes are far below those where factoring is hard for a computer: networks show what is hard to learn, not what is
hard to compute. Not in the post.

Deviations: the boxed claims of the post are lost in its extraction, and Claims 1 to 3 are read from its text; tuples
are digits of fixed width without commas and brackets; that factoring is hard is assumed by the post, and of routines
that factor two are counted here.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source='Post "Theoretical Limitations of Autoregressive Models": all sections, footnotes 1 to 4, appendix',
)
