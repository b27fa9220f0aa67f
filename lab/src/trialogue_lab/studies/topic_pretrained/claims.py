"""Claims of the study, about Tables 2.3 to 2.5 for other models than in the source, and the numbers for documents."""

from functools import partial

from trialogue.inspection.topic_structure.measure import AS_READ
from trialogue.inspection.topic_structure.ratios import ATTENTION, COSINE, DOT, RAW_ATTENTION
from trialogue_lab.ledger import Claim, graded, ours
from trialogue_lab.studies.topic_pretrained import statistics
from trialogue_lab.studies.topic_pretrained.config import HERE, MODELS, WORDS
from trialogue_lab.studies.topic_pretrained.statistics import MIN_PAIRS, RANDOM, level, ratio

MEASURES = {"cosine": COSINE, "dot-product": DOT, "attention": ATTENTION}
_TABLE_2_3 = "Thesis, Table 2.3"
_AVERAGED = "means over two texts and 15, 30 and 61 words of a topic, one topic a word"
_EQUAL_NUMBERS = "the numbers of pairs that often occur together and of pairs of a topic were different"
_WITHOUT_PAIRS = "samples without such pairs have no ratio, instead of an undefined one"
_RATIOS = {
    "cosine": "ratios 1.11 to 7.70 (BERT, ALBERT, BART, ELECTRA, RoBERTa)",
    "dot-product": "ratios 1.13 to 8.08 (BERT, ALBERT, BART, ELECTRA, RoBERTa)",
    "attention": "ratios 1.22 to 2.14 (BERT, ALBERT, BART, ELECTRA, RoBERTa)",
}
_OTHER_MODELS = (
    "Models that are available without the hub instead of BERT and similar models, on passages of Brown and WikiText-2 "
    "instead of Wikipedia."
)
_together = partial(Claim, source="Thesis, Table 2.5", statement_id="thesis:T-Tab2.5", setting=_OTHER_MODELS)
_random = partial(
    graded,
    source=f"{_TABLE_2_3}, random initialisation",
    statement_id="thesis:T-pretrained.table-2.3.random",
    setting=_OTHER_MODELS,
)

PUBLISHED = (
    *(
        graded(
            f"{name}-mostly-with-shared-words",
            f"{MODELS[name].label}: where a word may be of several topics, cosine, dot product and attention are "
            "mostly larger within a topic (share of texts, numbers of words and measures).",
            statistics.mostly(name, tuple(MEASURES.values())) > 0.5,
            "Thesis, Table 2.4",
            "mostly greater (41 of 45)",
            statement_id="thesis:T-pretrained.table-2.4",
            setting=_OTHER_MODELS,
        )
        for name in HERE
    ),
    *(
        _together(
            f"{name}-attends-less-than-to-words-it-meets",
            f"{MODELS[name].label}: attention within a topic is smaller than between as many pairs as most often "
            f"occur together (difference of means, debiased to texts of 100 tokens; at least {MIN_PAIRS} pairs that "
            "were read).",
            statistics.together_gain(name, ATTENTION).corrected(_EQUAL_NUMBERS) < 0,
            published=".00659 and .00751, .00621 and .00695, .00597 and .00677 (BERT)",
        )
        for name in HERE
    ),
    *(
        _together(
            f"{name}-embeds-closer-than-words-it-meets",
            f"{MODELS[name].label}: cosines within a topic are larger than between as many pairs as most often "
            f"occur together (difference of means; at least {MIN_PAIRS} pairs).",
            statistics.together_gain(name, COSINE).corrected(_EQUAL_NUMBERS) > 0,
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
        setting=_OTHER_MODELS,
    ),
)

OURS = (
    # A pilot led to the mean over texts and sizes instead of the minimum, so that these claims are of this project.
    *(
        ours(
            f"{name}-same-topic-{key}",
            f"{MODELS[name].label}: words of one topic have a larger {measure} than words of different ones "
            f"({'ratio' if key == 'attention' else 'difference'}, {_AVERAGED}).",
            ratio(name, measure).as_ratio() > 1 if key == "attention" else statistics.gain(name, measure) > 0,
            _TABLE_2_3,
            _RATIOS[key],
        )
        for name in HERE
        for key, measure in MEASURES.items()
    ),
    *(
        ours(
            f"published-models-{key}",
            f"BERT, ALBERT, BART, ELECTRA and RoBERTa, on average: words of one topic have a larger {measure} than "
            "words of different ones (difference, means over 15, 30 and 61 words of a topic, one topic a word).",
            statistics.published_gain(measure) > 0,
            _TABLE_2_3,
            _RATIOS[key],
        )
        for key, measure in MEASURES.items()
    ),
    *(
        ours(
            f"{name}-attention-beyond-random",
            f"{MODELS[name].label}: its ratio of attention is above that of its architecture with random weights "
            "(ratio of ratios, in the Brown corpus, means over numbers of words).",
            statistics.beyond_random(name, ATTENTION).as_ratio().corrected(_WITHOUT_PAIRS) > 1,
            f"{_TABLE_2_3} (the source has no intervals)",
        )
        for name in HERE
    ),
    *(
        ours(
            f"{name}-attention-falls-with-more-words",
            f"{MODELS[name].label}: the ratio of attention is larger for 15 words of a topic than for 61 (ratio "
            "of ratios), as it is in every row of the table.",
            statistics.fall(name, ATTENTION).as_ratio() > 1,
            f"{_TABLE_2_3} (from its columns)",
        )
        for name in HERE
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

_PAIRS = {"of a topic": "same", "of two topics": "different", "often together": "together"}

NUMBERS = {
    **{
        f"{name}: {key} ratio": ratio(name, measure).as_ratio()
        for name in HERE
        for key, measure in MEASURES.items()
    },
    **{f"{name}: random attention ratio": ratio(name, ATTENTION, weights=RANDOM).as_ratio() for name in HERE},
    **{
        f"{name}: {key} of pairs {pairs}": level(name, measure, column, WORDS[1])
        for name in HERE
        for key, measure in MEASURES.items()
        for pairs, column in _PAIRS.items()
    },
}
