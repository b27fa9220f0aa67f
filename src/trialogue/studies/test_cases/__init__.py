"""Does a verifier that may erase the last few tokens make a pretrained language model write more correct test cases?

Thesis section 3.2.2. A language model is asked for test cases of list append, which it gets wrong in part. A probe on
its hidden states becomes the verifier of tokenwise rejection sampling with backtracking (Algorithm 1); an evaluator
that parses and never executes counts distinct correct cases against queries. Controls that the thesis has too: the
evaluator as verifier, a random verifier, no greedy redo, block best-of-n, greedy decoding. One replication is one
repetition: its own unseen names, demonstrations and draws, its own completions to learn from, and verifiers that are
trained on them anew. What repetitions share is the pretrained model. Beside it `night` measures a surrogate: a
transformer of two blocks that each repetition trains from scratch on completions with known flaws (a line is wrong with
probability 0.15, lines are missing with probability 0.3). It borrows nothing, and asks for 4 cases on lists of at most
3 items, with 10 names and 10 runs; what is said of it are claims of ours.

Algorithm 1 is run as printed. The authors' released code differs: its greedy redo covers the first positions of the
completion, as many as all backtracks together have erased, not those just erased; and it does not go back twice from
the same prefix.

Deviations of the presets `default` and `night`: SmolLM2-135M-Instruct, its weights multiplied in bfloat16, in place of
CodeLlama-7B; 4 cases a prompt and 96 new tokens, not 8 and 384; in each repetition 4 names and 4 runs (`default`: 3
and 5), not 10 and 10; without a demonstration of the target function under another name the model writes almost no
correct case, so that its prompts hold one. `night` draws what claims are about in 18 repetitions, and what only tables
show, with the grid of top-p and temperature, in 6 of them (`default`: 4 and 2, without the ablations). Those of
`smoke`, which checks that the study runs and decides nothing: the surrogate in place of the model, taught for 250
steps on lists with at most 2 items, and 2 cases a prompt, for 4 names and 3 runs in each of 2 repetitions. Those of
`paper`: verifiers learn from 70 prompts with 20 completions each, drawn at top-p 0.95; their inputs are standardised;
what the last epoch leaves is used, without a selection by validation accuracy; the layer is the thesis' choice, given.

In every preset block best-of-n counts all candidates as queries, and stops after the last case, while all others go
on to their end, as in the thesis. Greedy completions are all equal, so that one is drawn and counted for all. Layers
are counted in blocks; the thesis counts from zero, and its last layer is here read after the final norm. Seconds are
those of one thread of the processor.
"""

from trialogue.ledger import Study
from trialogue.studies.test_cases.claims import CLAIMS, NUMBERS
from trialogue.studies.test_cases.config import PRESETS
from trialogue.studies.test_cases.figures import FIGURES
from trialogue.studies.test_cases.measure import parts
from trialogue.studies.test_cases.statements import THESIS
from trialogue.studies.test_cases.tables import TABLES

STUDY = Study(
    module=__name__,
    source=f"{THESIS}: Tables 3.6, 3.9 to 3.15 and 3.17, Figures 3.3 and 3.4, Algorithm 1; sections 3.4.1 and 3.7",
    version=3,
    presets=PRESETS,
    parts=parts,
    claims=CLAIMS,
    tables=TABLES,
    figures=FIGURES,
    numbers=NUMBERS,
    kind="table",
)
