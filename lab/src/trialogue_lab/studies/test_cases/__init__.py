"""Does a verifier that may erase the last few tokens make a pretrained language model write more correct test cases?

Thesis section 3.2.2. A language model is prompted for test cases of list append, some of which it gets wrong. A probe
on its hidden states is the verifier of tokenwise rejection sampling with backtracking (Algorithm 1). An evaluator
parses the cases without executing them. It counts distinct correct cases, which are compared with the number of
queries. The controls of the thesis are the evaluator as verifier, a random verifier, no greedy redo, block best-of-n
and greedy decoding. A further control is the greedy redo of the released code (`Backtracking.released`). One
replication is one repetition with its own function names, demonstrations, random numbers, training completions and
verifiers. All repetitions share the pretrained model. In the second half of the study, every repetition trains its own
small transformer from scratch, on completions with known flaws.

Deviations of the preset `night`: The pretrained model is SmolLM2-135M-Instruct with weights in bfloat16, instead of
CodeLlama-7B. Prompts request 4 cases in at most 96 new tokens, for 3 names with 4 runs in each of 12 repetitions. The
first 6 repetitions also compare layers, depths, thresholds, names and numbers of candidates. The first 4 also measure
the grid of top-p and temperature. A verifier learns from 14 prompts with 12 completions each. The pilot used 8 prompts,
which left about 50 examples of blocks. Without a demonstration of the target function under another name, the model
writes almost no correct case, so that the prompts contain one. From scratch, models have two blocks, lists have at most
2 items, and prompts request 4 cases, for 8 names with 6 runs in each of 24 repetitions, which measure everything. Their
prompt is the name alone, so that no name is misleading. In `default` all sizes are smaller. In `smoke` both models are
small and trained from scratch, and no claim is decided. Deviations of `paper`: A verifier learns from 70 prompts with
20 completions each, sampled at top-p 0.95. Its inputs are standardized. Its weights are those after the last epoch, and
not selected by validation accuracy. The layer is the choice of the thesis.

The ground truth verifier follows Algorithm 1 here, and judges every prefix as soon as a token is sampled. The released
code instead samples whole completions, finds the first error in each, erases B tokens before that error, and samples
the rest again. It counts the discarded tokens after the error as queries. An error therefore costs more queries there.
Distinct accuracy can also differ, because an error that is visible only in later tokens is found at its own position.

In every preset, block best-of-n counts all candidates as queries and stops after the last case. All other decodings
continue until their end, as in the thesis. The completions on which a verifier is trained end with the line of their
first error, since nothing is learned from the rest. Greedy completions are all equal, so that one is generated and
counted for all. Layers are numbered by the number of preceding blocks. The thesis counts from zero, and its last layer
is read after the final norm here. Seconds are processor time of one thread.
"""

from trialogue_lab.ledger import Study
from trialogue_lab.studies.test_cases.statements import THESIS

STUDY = Study.of_package(
    __name__,
    source=f"{THESIS}: Tables 3.6, 3.9 to 3.15 and 3.17, Figures 3.3 and 3.4, Algorithm 1; section 3.4.1",
    version=3,
    kind="table",
)
