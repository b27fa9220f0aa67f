"""How far from the true distribution are translations by parallel passes when target tokens depend on each other?

Section 4.2.4 of the thesis studies by attention why iterative refinement, which predicts all target tokens at once in
several passes, repeats words. The theorems before it state that sampling all tokens at once cannot reproduce the
dependence between them. This study combines both in an artificial language whose distribution of translations is known.
A parameter, the coupling, sets how strongly target tokens depend on each other. The gap between the output of T passes
and the truth can then be computed.

The exact part uses two perfect models. The first predicts each token from all others, as in the theorems. The second is
a denoiser, which also reads the current token and accounts for its possible error, as refinement trains it. The trained
part fits refiners and an autoregressive network of the same size, the twin, to the language. Where their distributions
can be enumerated, the gap is split into the gap of the perfect model and the remaining learning error. Tables 4.4 and
4.5 are computed for the same networks.

Claims about repeated words need refiners that have learned the task. They are not tested in a run whose two-stage
refiners translate less than half of the test sentences correctly, as in the preset `default`.

Deviations: sentences of two to six artificial words instead of WMT, and networks of about 100,000 parameters. The
attention tables can also be computed for your own translator and text (fields `model` and `text`). Repeated words are
counted by `trialogue.generation.translation.scores.stutter`.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Thesis section 4.2.4, Tables 4.4 and 4.5; sections 4.2.2 and 4.2.3"
)
