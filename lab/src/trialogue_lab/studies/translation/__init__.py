"""How much quality does translation in a few parallel passes lose, and how much time does it save?

Sections 4.2.2 to 4.2.4 of the thesis, Tables 4.1 to 4.3. A refiner predicts all target tokens at once from a guess of
them. It is compared with an autoregressive twin of the same shape, trained on the same text. Quality, repeated words,
decoder passes and latency are measured for several numbers of steps, hypotheses of the target length, training stages,
noise levels and kinds of training targets.

Tables 4.4 and 4.5 are computed for the same refiner on the test sentences. They describe the attention of the last
layer in the fourth pass, which reads the output of the third, at positions that repeat a token and elsewhere. For
attention, refinement starts from random tokens of the most probable length and does not remask repeated words.

Repeated words are counted after repeated tokens are dropped, as in the thesis. The rows hold the rate before that as
well. Two details of the released PaDIR code differ. Its test for repeats is circular: it compares the first position
with the last. Here the first position has no predecessor. Its ranking of hypotheses adds the log-probability of the
most probable token also at positions that keep the previous token. Here the log-probability of the kept token is added.

Three statements of the thesis have no claim. "7 to 8 times fewer decoder passes" is arithmetic, the target length over
four steps, and the tables show the passes of both networks. A "custom vocabulary" would need a second tokenizer.
"Reasonable translations" after one pass has no criterion, and the tables show BLEU after one pass.

Deviations: German to English of Tatoeba (tatoeba.org, CC BY 2.0 FR) instead of three WMT corpora, networks of a few
million parameters, Muon (in `paper` AdamW) instead of Adafactor, and BLEU and chrF instead of BLEURT. Sentences that
are linked by a shared normalised source or target are in one part of the split. The refiner starts from the weights of
this study's twin and learns the twin's greedy translations of the training sources. A second pupil learns to fill any
share of masks and translates by the schedule of mask-predict (Ghazvininejad et al. 2019). The refiner's candidates are
ranked by itself and by the twin (Gu et al. 2018). Small refiners are trained for fewer updates from random weights.
Each differs in one respect from the first of them, which learns the references.

The setting `text` names a table of pairs, relative to the working directory. The provenance of a result contains the
checksum of the text.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis sections 4.2.2 to 4.2.4: Tables 4.1 to 4.5")
