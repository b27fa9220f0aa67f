"""Table and figure of the study."""

from trialogue_lab.ledger import Cells, Rows, result_table
from trialogue_lab.studies.topic_pairs.config import MODELS
from trialogue_lab.studies.topic_pretrained.claims import MEASURES
from trialogue_lab.studies.topic_pretrained.config import MODELS as NAMES
from trialogue_lab.studies.topic_pretrained.pages import FIGURES as EARLIER
from trialogue_lab.studies.topic_pretrained.statistics import RANDOM, level, ratio

_ATTENTION = MEASURES["attention"]
_MIDDLE = 30


@result_table(
    "Attention within topics, between words that often meet, and with random weights",
    "Thesis, Tables 2.3 and 2.5",
    rows_are="model",
    note="debiased to texts of 100 tokens, means over draws, ± one standard deviation. The first two columns are "
    f"means over pairs with {_MIDDLE} words of a topic. The third is the ratio of same-topic to different-topic "
    "attention in the Brown corpus. BERT has .00621, .00695 and 0.9994 to 1.0001 in print",
)
def _attention_table(_: Rows) -> Cells:
    return {
        NAMES[name].said: {
            "within a topic": level(name, _ATTENTION, "same", _MIDDLE),
            "often together": level(name, _ATTENTION, "together", _MIDDLE),
            "ratio with random weights": ratio(name, _ATTENTION, weights=RANDOM).as_ratio(),
        }
        for name in MODELS
    }


FIGURES = tuple(figure for figure in EARLIER if figure.name == "often-together")
TABLES = (_attention_table,)
