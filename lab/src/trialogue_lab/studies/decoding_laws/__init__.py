"""How far is each common decoding rule from the law that its users believe they sample?

Small rules on small oracles: ten families of rules, from one that shows its verdict at the first token to one that
shows it at the last, at two lengths of up to eight tokens each. Oracles are Markov chains whose laws of the next token
are drawn at random; masked decoding is held against uniform ones as well. What every decoding rule samples, and the
queries that a run takes, come from every branch of the walk's own step; those of the best of n and of a draw by weight
among n masked outputs from closed forms. Nothing is sampled but the oracles. Queries are those of walks that remember
no node.

Outputs that break the rule, and runs without an output, count in a distance: it is their probability and what valid
outputs have too much. Masked decoding always finishes validly, backtracking mostly does not: claims that hold
backtracking against masked decoding, or its greedy redo against one that samples, compare failure to finish with bias.

Rejection is of finished drafts, here and in the claim `at-the-cost-of-rejection`. Under verdicts the walk with momentum
1 is rejection that begins again at the first refusal: it masks the first token, and asks at every node that it passes
on the way back up. Its queries beside those of rejection of finished drafts are what stopping early saves, less that
way.

All claims are ours. The law that users believe in is stated with each rule: the model's law given that the rule holds;
the same with p(x)^(1/T), or at temperature T, in place of p(x); the same on outputs within the cut; the likeliest
output. Verifiers know the rule and the length and nothing of the oracle, and are never wrong about a prefix; values
are exact, or wrong by a factor of two. The hidden string of Theorem 3.1.1, which such a verifier is no help for, stands
last on the ladder and apart from all means.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="ours; decoding rules of thesis Definitions 3.1.4 and 3.1.5 and Algorithms 1 and 2",
)
