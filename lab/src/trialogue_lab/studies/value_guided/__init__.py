"""How much does backtracking help if values have errors, and what does it cost?

The value of a prefix is the expected outcome of its completions. Action-level sampling samples each token in proportion
to its probability under the model, times the value of the extended prefix. Errors of the values multiply along the
sequence. The value-guided walk (VGB, Algorithm 2) moves forward and back on the tree of prefixes until it reaches a
complete sequence.

On random models with up to 2,047 prefixes, everything is exact. The study computes the output distributions of both
samplers, and the steps of the walk to its first complete sequence. It also computes the walk's stationary distribution,
its spectrum and its mixing time. These numbers follow from an equivalent electrical network and from all transitions of
the walk. For longer sequences, the outcome is a product over tokens. There the samplers are run, and their outputs are
compared with computed distributions.

Finally, small transformers trained on Dyck strings (balanced brackets) complete prompts of another distribution under
exact, noisy and trained values. They are compared with backtracking, sequential Monte Carlo and rejection, by accuracy,
by distance to the model's distribution restricted to valid strings, and by model calls.

Deviations: Figure 3.5 of the thesis shows one step of the walk, and the section prints no numbers. This project chose
the models, errors and lengths. Models of Dyck strings are small and complete the last three to five tokens, so that
every completion can be enumerated. Values are trained on one completion for each of a few thousand prompts, and
outcomes of complete sequences are exact for all methods. The sentence on the trade-off between quality and efficiency
has two claims on Dyck strings, one for each half. The study `code-values` measures Python code, which the thesis also
names.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis section 3.3.1: Algorithm 2, properties (1) to (3)")
