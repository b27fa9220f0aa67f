"""Does a verifier that may erase the last few tokens make a pretrained language model write more correct test cases?

Thesis section 3.2.2. A language model is asked for test cases of list append, which it gets wrong in part. A probe on
its hidden states becomes the verifier of tokenwise rejection sampling with backtracking (Algorithm 1); an evaluator
that parses and never executes counts distinct correct cases against queries. Controls that the thesis has too: the
evaluator as verifier, a random verifier, no greedy redo, block best-of-n, greedy decoding. One replication is one
repetition: its own unseen names, demonstrations and draws. Repetitions that share a verifier share its training: what
is said of trained verifiers and of block best-of-n is said of the verifiers that the run trained: two in `default`, ten
in `night`, one in `smoke` and `paper`.

Deviations of the preset `default`: SmolLM2-135M-Instruct in place of CodeLlama-7B, 4 cases a prompt, 96 new tokens,
3 names and 5 runs in each of 8 repetitions (`night`: 6 names, 40 repetitions); without a demonstration of the target
function under another name the model writes almost no correct case, so that its prompts hold one. Those of `smoke`,
which checks that the study runs and decides nothing: a surrogate of two blocks that was taught flawed completions, of
lists with at most 2 items, not 3, and 2 cases a prompt, not 4, for 4 names and 3 runs, not 10 and 10, in each of 2
repetitions. Those of `paper`: a verifier learns from 70 prompts with 20 completions each, drawn at top-p 0.95; its
inputs are standardised; what the last epoch leaves is used, without a selection by validation accuracy; the layer is
the thesis' choice, given.

In every preset block best-of-n counts all candidates as queries, and stops after the last case, while all others go
on to their end, as in the thesis. Greedy completions are all equal, so that one is drawn and counted for all. Layers
are counted in blocks; the thesis counts from zero, and its last layer is here read after the final norm.
"""

from trialogue.ledger import Study
from trialogue.studies.test_cases.claims import CLAIMS, NUMBERS, THESIS
from trialogue.studies.test_cases.config import PRESETS
from trialogue.studies.test_cases.figures import FIGURES
from trialogue.studies.test_cases.measure import parts
from trialogue.studies.test_cases.tables import TABLES

STUDY = Study(
    module=__name__,
    source=f"{THESIS}: Tables 3.6, 3.9 to 3.13, 3.15 and 3.17, Figures 3.3 and 3.4, Algorithm 1",
    version=2,
    presets=PRESETS,
    parts=parts,
    claims=CLAIMS,
    tables=TABLES,
    figures=FIGURES,
    numbers=NUMBERS,
    kind="table",
)
