"""Does backtracking guided by trained values help a language model to write test cases, and what does it cost?

Thesis section 3.3.1 names Python code generation as a task on which VGB (Algorithm 2) was successful, and cites another
paper for the numbers. Every repetition trains a small transformer on flawed test cases of list append, as the study
`test-cases` does from scratch. A completion is accepted if it consists of the requested number of test cases, all
correct and distinct. A probe on the hidden states then learns the value of a prefix, which is the probability that the
model's completion is accepted. It learns from completions of other function names, each cut at a random place.

Methods sample equally many completions of the same prompts: no verifier, rejection, action-level sampling, the first
leaf of the value-guided walk (VGB), the walk with momentum, the walk on blocks of tokens, and sequential Monte Carlo
(particles). All guided methods have the same trained values for prefixes, and the exact verdict of the evaluator for
complete texts, as Algorithm 2 prescribes if outcomes are available. The walks therefore return accepted texts only.
Their share of accepted outputs is no finding, but their cost and their distribution are.

The target is the model's distribution restricted to accepted texts. It cannot be enumerated, so that distributions are
compared by the total number of list items in an accepted output. The distance is the squared Euclidean distance between
the probabilities of these totals. It is estimated without bias from the outputs of a method and from independent
outputs of rejection, so that sampling error adds nothing to its mean. For rejection itself it is zero on average.

Deviations: the thesis prints no numbers for this task. The model is small, the prompt is the name of the function, and
next tokens are restricted to the nucleus of 0.95. Completions end at different lengths. Algorithm 2 has a fixed
horizon, for which the first leaf under exact values has the target distribution. At varying lengths the first leaf
prefers short completions even under exact values. The walk is not lazy, which halves its steps and leaves its outputs
unchanged. Model calls are next-token distributions, counted at every visit. The values of next tokens need the hidden
states of one more forward pass each, unless the prefix was seen before. The study counts evaluated positions as well.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis section 3.3.1, last paragraph, and section 3.6")
