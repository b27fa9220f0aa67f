"""What does a translation in a handful of parallel passes cost in quality, and what does it save in time?

Sections 4.2.2 to 4.2.4 of the thesis, Tables 4.1 to 4.3: a refiner, whose decoder predicts all tokens of a target at
once from a guess of them, beside an autoregressive twin of the same shape, trained on the same text. Quality, stutter,
passes and latency are measured against steps, hypotheses of the target's length, stages of training, noise and
distillation. Tables 4.4 and 4.5 are taken on the same refiner: on the test sentences, how the last layer attends in the
fourth pass, which reads what the third wrote, where it writes a token twice and elsewhere. For attention,
refinement starts from random tokens of the likeliest length and does not remask stutter.

Stutter is counted after repeated tokens are dropped, as the thesis does after the last step; rows hold the rate before
that as well. Two details of the released PaDIR code differ. Its test for stutter is circular: it compares the first
position with the last. Here the first position has no predecessor. Its ranking of hypotheses adds the log-probability
of the most likely token also at positions that keep the previous token. Here the log-probability of the kept token is
added.

Three sentences of the thesis have no claim. "7 to 8 times fewer decoder passes" is arithmetic, the target length over
four steps; the tables print the passes of both networks. A "custom vocabulary" would need a second tokenizer, and
"reasonable translations" after one pass have no criterion; the tables print BLEU after one pass.

Deviations: German to English of Tatoeba (tatoeba.org, CC BY 2.0 FR) in place of three corpora of WMT, networks of a few
million parameters, Muon (in `paper` AdamW) in place of Adafactor, and BLEU and chrF in place of BLEURT. Sentences that
share a normalised source or target, by whatever chain of pairs, are in one part of the split. The refiner begins with
the weights of the study's own twin, and learns what that, greedily, makes of the sources it learned from; beside it a
second pupil learns to fill masks, any share of them, and translates by the schedule of mask-predict (Ghazvininejad et
al. 2019). The refiner's candidates are ranked by itself, and by the twin (Gu et al. 2018). Small refiners are trained
for less, from weights that are drawn, and each differs in one respect from the first of them, which learns the
references.

The setting `text` names a table of pairs, looked for where the run begins; the provenance of a result names the sum of
what was read.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis sections 4.2.2 to 4.2.4: Tables 4.1 to 4.5")
