"""Does a verifier that may erase the last few tokens make a pretrained language model write more correct test cases?

Thesis section 3.2.2. A language model is asked for test cases of list append, which it gets wrong in part. A probe on
its hidden states becomes the verifier of tokenwise rejection sampling with backtracking (Algorithm 1); an evaluator
that parses and never executes counts distinct correct cases against queries. Controls that the thesis has too: the
evaluator as verifier, a random verifier, no greedy redo, block best-of-n, greedy decoding; and one that it has not: the
redo as the released code does it (`Backtracking.released`). One replication is one repetition: its own unseen names,
demonstrations and draws, its own completions to learn from, and its own verifiers, trained anew. What all repetitions
share is the pretrained model. In the second half, from scratch, they do not share that either: each trains a small
transformer on completions with known flaws.

Deviations of the preset `night`: SmolLM2-135M-Instruct, its weights in bfloat16, in place of CodeLlama-7B, 4 cases a
prompt, 96 new tokens, 3 names and 4 runs in each of 12 repetitions, the first 6 of which draw the comparisons among
layers, depths, thresholds, names and candidates as well, the first 4 the plane of top-p and temperature; a verifier
learns from 14 prompts with 12 completions each (the pilot's from 8, which left some 50 examples of blocks); without a
demonstration of the target function under another name the model writes almost no correct case, so that its prompts
hold one. From scratch: two blocks, lists of at most 2 items, 4 cases a prompt, 8 names and 6 runs in each of 24
repetitions, all of which draw everything; the prompt is the name alone, so that no name misleads. In `default` all this
is smaller, in `smoke` both models are small ones from scratch, and nothing is decided. Those of `paper`: 70 prompts
with 20 completions each for a verifier, drawn at top-p 0.95; its inputs are standardised; what the last epoch leaves is
used, without a selection by validation accuracy; the layer is the thesis' choice, given.

The ground truth as a verifier follows Algorithm 1 here: it judges every prefix as soon as a token is sampled. The
released code instead samples whole completions, finds the first error in each, goes back B tokens from that error,
and samples the rest again. It counts the discarded tail after the error as queries. An error costs more queries there,
and distinct accuracy can differ, because an error that shows only in later tokens is found at its own place.

In every preset block best-of-n counts all candidates as queries, and stops after the last case, while all others go
on to their end, as in the thesis. Completions that a verifier learns from end with the line of their first error, as
nothing is learned from what follows. Greedy completions are all equal, so that one is drawn and counted for all. Layers
are counted in blocks; the thesis counts from zero, and its last layer is here read after the final norm. Seconds are
processor time of one thread.
"""

from trialogue_lab.ledger import Study
from trialogue_lab.studies.test_cases.statements import THESIS

STUDY = Study.of_package(
    __name__,
    source=f"{THESIS}: Tables 3.6 and 3.9 to 3.17, Figures 3.3 and 3.4, Algorithm 1; section 3.4.1",
    version=3,
    kind="table",
)
