"""What does constrained generation cost in calls of the oracle, and what is a perfect verifier worth?

Every statement of section 3.1 of the thesis, computed exactly: the hidden string of Theorem 3.1.1 by the dynamic
program of its best searcher, and by that searcher as it runs; knapsacks as constrained generation (Theorem 3.1.2), with
the easy cases that section 3.5.1 names; rejection and tokenwise rejection on one string (Proposition 3.1.1), on all
strings but one (Proposition 3.1.2) and on Dyck strings; and the |Sigma| D calls of a perfect verifier that are said to
suffice.

Corrected constants stand beside those in print. Deviations: calls are counted as Definition 3.1.6 does, of the oracle
alone; tokenwise rejection gives up, with FAIL, after a number of rejections at one position, as without such a cap it
never halts on the hidden string; lattices are reduced by the algorithm of Lenstra, Lenstra and Lovasz alone.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 3.1: Theorems 3.1.1 and 3.1.2, Propositions 3.1.1 and 3.1.2; section 3.5.1",
)
