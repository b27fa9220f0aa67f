"""Claims of the study: Tables 2.3 to 2.5 on other models than the source's, and the quantities that texts quote."""

from functools import partial

from trialogue.inspection.topic_structure.measure import AS_READ
from trialogue.inspection.topic_structure.ratios import ATTENTION, COSINE, DOT, RAW_ATTENTION
from trialogue_lab.ledger import Claim, graded, ours
from trialogue_lab.studies.topic_pretrained import statistics
from trialogue_lab.studies.topic_pretrained.config import HERE, MODELS, WORDS
from trialogue_lab.studies.topic_pretrained.statistics import LEAST_PAIRS, RANDOM, level, ratio

MEASURES = {"cosine": COSINE, "dot-product": DOT, "attention": ATTENTION}
_ONE = "Thesis, Table 2.3"
_MEAN = "means over two texts and 15, 30 and 61 words of a topic, one topic a word"
_AS_MANY = "pairs that are often together were not as many as those of a topic"
_WITHOUT_PAIRS = "draws in which no such pairs were read have no ratio, where they had an undefined one"
_RATIOS = {
    "cosine": "ratios 1.11 to 7.70 (BERT, ALBERT, BART, ELECTRA, RoBERTa)",
    "dot-product": "ratios 1.13 to 8.08 (BERT, ALBERT, BART, ELECTRA, RoBERTa)",
    "attention": "ratios 1.22 to 2.14 (BERT, ALBERT, BART, ELECTRA, RoBERTa)",
}
_OTHER = (
    "Models that can be had without the hub instead of BERT and its like, on passages of Brown and WikiText-2 instead "
    "of Wikipedia."
)
_together = partial(Claim, source="Thesis, Table 2.5", statement_id="thesis:T-Tab2.5", setting=_OTHER)
_random = partial(
    graded,
    source=f"{_ONE}, random initialisation",
    statement_id="thesis:T-pretrained.table-2.3.random",
    setting=_OTHER,
)

PUBLISHED = (
    *(
        graded(
            f"{name}-mostly-with-shared-words",
            f"{MODELS[name].said}: where a word may be of several topics, cosine, dot product and attention are mostly "
            "larger within a topic (share of texts, numbers of words and measures).",
            statistics.mostly(name, tuple(MEASURES.values())) > 0.5,
            "Thesis, Table 2.4",
            "mostly greater (41 of 45)",
            statement_id="thesis:T-pretrained.table-2.4",
            setting=_OTHER,
        )
        for name in HERE
    ),
    *(
        _together(
            f"{name}-attends-less-than-to-words-it-meets",
            f"{MODELS[name].said}: attention within a topic is smaller than between as many pairs as most often occur "
            f"together (difference of means, debiased to texts of 100 tokens; at least {LEAST_PAIRS} pairs that were "
            "read).",
            statistics.together_gain(name, ATTENTION).corrected(_AS_MANY) < 0,
            published=".00659 and .00751, .00621 and .00695, .00597 and .00677 (BERT)",
        )
        for name in HERE
    ),
    *(
        _together(
            f"{name}-embeds-closer-than-words-it-meets",
            f"{MODELS[name].said}: cosines within a topic are larger than between as many pairs as most often occur "
            f"together (difference of means; at least {LEAST_PAIRS} pairs).",
            statistics.together_gain(name, COSINE).corrected(_AS_MANY) > 0,
            published=".468 and .316, .461 and .311, .425 and .323 (BERT)",
        )
        for name in HERE
    ),
    *(
        _random(
            f"{name}-random-attention",
            f"With random weights the architecture of {MODELS[name].name} attends alike within topics and between: the "
            "debiased ratio is within 0.01 of 1 (Brown corpus).",
            ratio(name, ATTENTION, weights=RANDOM).as_ratio().near(1, margin=0.01),
            published="0.99943 to 1.00007 (BERT)",
        )
        for name in HERE
    ),
    _random(
        "minilm-random-cosine",
        "With random weights what the first block of MiniLM-L6 reads has the same cosines within topics and between: "
        "the ratio is within 0.01 of 1 (Brown corpus).",
        ratio("minilm", COSINE + AS_READ, weights=RANDOM).as_ratio().near(1, margin=0.01),
        published="0.99974 to 1.00080 (BERT)",
    ),
    Claim(
        "lengths-bias-attention",
        "With random weights the architecture of MiniLM-L6 attends more within a topic where attention is not debiased "
        "by length, in texts of 20 to 128 tokens (Brown corpus).",
        ratio("minilm", RAW_ATTENTION, weights=RANDOM).as_ratio() > 1,
        "Thesis section 2.1.5, on debiasing attention",
        "above 1 without debiasing",
        statement_id="thesis:T-pretrained",
        setting=_OTHER,
    ),
)

OURS = (
    # The pilot turned the least over texts and sizes into a mean.
    *(
        ours(
            f"{name}-same-topic-{measure}",
            f"{MODELS[name].said}: words of one topic have a larger {said} than words of different ones "
            f"({'ratio' if measure == 'attention' else 'difference'}, {_MEAN}).",
            ratio(name, said).as_ratio() > 1 if measure == "attention" else statistics.gain(name, said) > 0,
            _ONE,
            _RATIOS[measure],
        )
        for name in HERE
        for measure, said in MEASURES.items()
    ),
    *(
        ours(
            f"published-models-{measure}",
            f"BERT, ALBERT, BART, ELECTRA and RoBERTa, on average: words of one topic have a larger {said} than words "
            "of different ones (difference, means over 15, 30 and 61 words of a topic, one topic a word).",
            statistics.published_gain(said) > 0,
            _ONE,
            _RATIOS[measure],
        )
        for measure, said in MEASURES.items()
    ),
    *(
        ours(
            f"{name}-attention-beyond-random",
            f"{MODELS[name].said}: its ratio of attention is above that of its architecture with random weights (ratio "
            "of ratios, in the Brown corpus, means over numbers of words).",
            statistics.beyond_random(name, ATTENTION).as_ratio().corrected(_WITHOUT_PAIRS) > 1,
            f"{_ONE} (the source compares no intervals)",
        )
        for name in HERE
    ),
    *(
        ours(
            f"{name}-attention-falls-with-more-words",
            f"{MODELS[name].said}: the ratio of attention is larger for 15 words of a topic than for 61 (ratio of "
            "ratios), as it is in every row of the table.",
            statistics.fall(name, ATTENTION).as_ratio() > 1,
            f"{_ONE} (read off its columns)",
        )
        for name in HERE
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

_PAIRS = {"of a topic": "same", "of two topics": "different", "often together": "together"}

NUMBERS = {
    **{
        f"{name}: {measure} ratio": ratio(name, said).as_ratio()
        for name in HERE
        for measure, said in MEASURES.items()
    },
    **{f"{name}: random attention ratio": ratio(name, ATTENTION, weights=RANDOM).as_ratio() for name in HERE},
    **{
        f"{name}: {measure} of pairs {pairs}": level(name, said, column, WORDS[1])
        for name in HERE
        for measure, said in MEASURES.items()
        for pairs, column in _PAIRS.items()
    },
}
