"""When values err, what does going back buy, and what does it cost?

Action-level sampling draws each token by the model's law times the value of what comes of it; errors of the values
multiply along the sequence. The value-guided walk (VGB) goes back as well. On random trees of up to 2,047 prefixes all
is exact: what either samples, the walk's stationary law, the mass of its leaves, its spectrum and mixing, and the
steps to its first leaf, from conductances and from every branch of the walk's own step. At longer horizons, with an
outcome that is a product over tokens, the walks are run, and their outputs held against what is computed. Then small
transformers trained on Dyck strings complete prompts of another law under exact, noisy and trained values, beside
backtracking, sequential Monte Carlo and rejection: accuracy, distance to the restricted law, queries.

Deviations: Figure 3.5 of the thesis is a drawing of one step of the walk, and the section prints no numbers; the
trees, errors and horizons are ours. Models are small and complete the last three to five tokens, so that every
completion can be listed; values are trained on one completion of each of some thousand prompts, and outcomes at
complete sequences are exact in all rules. The sentence on the trade-off of quality and efficiency has two claims on
Dyck strings, one for each half. Python code with values, which the thesis names too, is not measured.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 3.3.1: Algorithm 2, properties (1) to (3)",
)
