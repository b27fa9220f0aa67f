"""How many oracle calls does constrained generation need, and how much does a perfect verifier help?

The oracle is a language model, and the verifier decides whether a prefix can be completed to a valid string. The study
computes every statement of section 3.1 of the thesis exactly. The hidden string of Theorem 3.1.1 is the only valid
string with positive probability. The optimal cost of finding it comes from a dynamic program, and the optimal search is
also simulated. Knapsack problems are solved by constrained generation (Theorem 3.1.2) and by the methods for easy cases
in section 3.5.1. Rejection sampling tests complete strings, and tokenwise rejection tests every prefix. They are
compared on tasks with a single valid string (Proposition 3.1.1), with all strings valid but one (Proposition 3.1.2),
and on Dyck strings (balanced brackets). The study also tests whether |Sigma| D calls of a perfect verifier suffice, for
D tokens from the alphabet Sigma.

Corrected constants are shown next to the printed ones. Deviations: Calls are counted as in Definition 3.1.6, which
counts calls of the oracle only. Tokenwise rejection returns FAIL after a maximum number of rejections at one position,
because it never halts on the hidden string otherwise. Lattices are reduced by the algorithm of Lenstra, Lenstra and
Lovasz only.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 3.1: Theorems 3.1.1 and 3.1.2, Propositions 3.1.1 and 3.1.2; section 3.5.1",
)
