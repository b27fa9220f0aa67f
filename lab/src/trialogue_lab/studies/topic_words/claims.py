"""Claims of the study about Figure 2.3, and the numbers that documentation pages quote."""

from trialogue_lab.ledger import Claim, cited, largest, ours, smallest
from trialogue_lab.studies.topic_words.statistics import mean_cosine, smallest_lead

_FIGURE = "Thesis Figure 2.3"
_SETTING = "MiniLM-L6 replaces BERT. Cosines are of rows of the embedding table."
_WITHIN = smallest("pair", "cosine", where="same")
_BETWEEN = largest("pair", "cosine", where="not same")

CLAIMS = (
    Claim(
        "every-pair-within-a-topic-is-closer",
        "In MiniLM, any two of the nine words of Figure 2.3 that share a topic have a larger cosine than any two that "
        "do not (smallest cosine within a topic minus largest cosine between topics).",
        _WITHIN - _BETWEEN > 0,
        **cited(
            _FIGURE,
            "larger if the two words belong to the same topic, and smaller if they belong to different topics",
            "thesis:T-Fig2.3",
            setting=_SETTING,
        ),
    ),
    ours(
        "every-topic-is-closer-on-average",
        "In MiniLM, the words of each of the three topics of Figure 2.3 have a larger mean cosine with each other than "
        "with the words of the other topics (smallest difference over topics).",
        smallest_lead() > 0,
        _FIGURE,
    ),
)

NUMBERS = {
    "smallest cosine within a topic": _WITHIN,
    "largest cosine between topics": _BETWEEN,
    "mean cosine within a topic": mean_cosine(True),
    "mean cosine between topics": mean_cosine(False),
}
