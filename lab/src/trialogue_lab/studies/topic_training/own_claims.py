"""Claims of this project: higher learning rates, other interpretations of the figures, and checks of measurements."""

from trialogue_lab.ledger import largest, ours
from trialogue_lab.studies.topic_training import statistics
from trialogue_lab.studies.topic_training.config import SGD_RATES

LOSSES = {"CE": "cross-entropy", "squared": "the squared loss"}
FIGURES = {"with L2": "2.2", "without L2": "2.5"}
"""Figures of the thesis that show values under uniform attention."""
ATTENTION_RATE = SGD_RATES["attention"]["CE"]

OURS = (
    ours(
        "zero-attention-stays",
        "Where W^K and W^Q begin at zero they stay there (largest entry after ten steps of Adam, all trainings).",
        largest("saddle", "moved") < 1e-12,
        "Thesis section 2.1.4.1: each has a gradient proportional to the other",
    ),
    ours(
        "shifted-labels-hide-topics",
        "With topics shifted by four words, as in the authors' analysis, the ratio of same topic to other topics is "
        "smaller (difference of logarithms, Adam at 0.01).",
        statistics.over("same_topic", "other", "adam", 0.01)
        - statistics.over("same_topic", "other", "adam", 0.01, shift=4)
        > 0,
        "Thesis Table 2.1",
    ),
    ours(
        "words-and-topics-alike",
        "With values trained too, Adam at 0.01, attention to the same word is within a factor 1.5 of that to its topic "
        "(logarithm of the ratio).",
        statistics.over("same_word", "same_topic", "adam", 0.01).near(0, margin=0.405),
        "Thesis Table 2.1",
    ),
    ours(
        "values-have-a-diagonal",
        "Trained by Adam on the squared loss without a penalty, values have a diagonal above their blocks: that of the "
        "optimum at finite length.",
        statistics.entries("without L2", "diagonal", "squared", "adam")
        - statistics.entries("without L2", "block", "squared", "adam")
        > 0,
        "Thesis Figure 2.10",
    ),
    *(
        ours(
            f"values-stand-out-{'penalty-' if name == 'with L2' else ''}{loss.lower()}",
            f"Trained by Adam on {LOSSES[loss]}, {name}, values are larger for different words of one topic than for "
            f"words of two, by more than {least:g} deviations of the latter, which a constant in each column leaves as "
            "it is.",
            statistics.contrast(name, loss, "adam") > least,
            "Thesis Figures 2.2 and 2.5",
        )
        for name, loss, least in (
            ("with L2", "CE", 5.0),
            ("without L2", "CE", 5.0),
            ("with L2", "squared", 3.0),
            ("without L2", "squared", 2.0),
        )
    ),
    *(
        ours(
            f"sgd-embeddings-in-blocks-{loss.lower()}",
            f"All of a network trained by {loss_name} and SGD at a rate of {SGD_RATES['embeddings'][loss]:g}, W^E^T "
            "W^E is larger for different words of one topic than for words of two, by more than three deviations of "
            "the latter.",
            statistics.contrast("all", loss, "sgd", SGD_RATES["embeddings"][loss]) > 3,
            "Thesis Figure 2.1, at a learning rate of this project",
        )
        for loss, loss_name in LOSSES.items()
    ),
    *(
        ours(
            f"sgd-values-in-blocks-{'penalty-' if name == 'with L2' else ''}{loss.lower()}",
            f"Under uniform attention, {name}, W^V trained by {loss_name} and SGD at a rate of "
            f"{SGD_RATES['values'][loss]:g} is on average more than ten times as large for words of one topic as for "
            "words of two, or more than five deviations of the latter (the smaller of these is 1).",
            statistics.standing(name, loss, "sgd", SGD_RATES["values"][loss]).as_ratio() > 1,
            f"Thesis Figure {figure}, at a learning rate of this project",
        )
        for name, figure in FIGURES.items()
        for loss, loss_name in LOSSES.items()
    ),
    *(
        ours(
            f"sgd-attention-{ending}",
            f"SGD at {ATTENTION_RATE:g}: attention to {higher} is above that to {lower} (logarithm of the ratio).",
            statistics.over(first, second, "sgd", ATTENTION_RATE) > 0,
            "Thesis Table 2.1, at a learning rate of this project",
        )
        for ending, first, higher, second, lower in (
            ("to-topics", "same_topic", "other words of the topic", "other", "words of other topics"),
            ("to-itself", "same_word", "the same word", "same_topic", "other words of the topic"),
        )
    ),
    ours(
        "squared-loss-orders-attention",
        "Trained on the squared loss, that of the theory, attention to the same word is above that to its topic (Adam "
        "at 0.01, in documents of 100 words).",
        statistics.attention("same_word", "adam", 0.01, loss="squared")
        - statistics.attention("same_topic", "adam", 0.01, loss="squared")
        > 0,
        "Thesis Table 2.1, caption",
    ),
    ours(
        "queries-wait-too",
        "|W^Q| waits as |W^K| does (growth over that of |W^V|, as above).",
        statistics.early_growth("queries") < 0.05,
        "Thesis Figure 2.4",
    ),
)
