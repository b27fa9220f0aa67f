"""Claims of the study: the statements of section 4.2 on translation, at a reduced scale, and claims of our own."""

from functools import partial

from trialogue_lab.ledger import Claim, graded, ours
from trialogue_lab.studies.translation import config
from trialogue_lab.studies.translation import statistics as stats
from trialogue_lab.studies.translation.config import MASK_PREDICT, PLAIN, REFINER, RESCORED, TWIN
from trialogue_lab.studies.translation.statistics import corpus, greedy, latency, refined, score, small
from trialogue_lab.studies.translation_dependency.attention import make_attention_claims

_BEAM = 5
_FAST = "4 steps, 5"
_SINGLE = "4 steps, 1"
_RANKED = "4 steps, 5, rescored"
_SETTING = (
    "German to English sentences of Tatoeba of about ten tokens, and networks of five million parameters. The source "
    "translates sentences of WMT of 28 to 33 tokens with 67 million parameters."
)
_DEVICE = (
    "One CPU thread and translations of about ten tokens, for which the twin needs ten passes. The source measures "
    "a TPU v3 and 28 to 33 tokens."
)
_SMALL = (
    "Refiners of five million parameters, trained for 1,200 updates on 160,000 sentence pairs of Tatoeba. The source "
    "trains 67 million parameters for 500,000 updates on WMT."
)

_speed = partial(Claim, source="Section 4.2.3", statement_id="thesis:M-SPEED", setting=_DEVICE)
_ours = partial(ours, source="Section 4.2.3")
_published = partial(Claim, setting=_SETTING)
_graded = partial(graded, source="Table 4.1", setting=_SETTING)
_recommended = partial(Claim, source="Section 4.2.2", setting=_SMALL)
_TRAINING = "thesis:M-PADIRTRAIN"

_REFINED, _GREEDY, _MASK_PREDICT = refined(4, _BEAM), greedy(), score(MASK_PREDICT, 4, _BEAM)
_BEAMS, _RERANKED = score(TWIN, 0, _BEAM), score(RESCORED, 4, _BEAM)
_BY_REFINER = "The refiner's BLEU after four steps, by five hypotheses,"
_BY_TWIN = "Where the twin ranks the refiner's five hypotheses, BLEU after four steps"

CLAIMS = (
    _published(
        "four-steps-improve-on-one",
        "The refiner's BLEU is higher after four steps than after one, by five hypotheses.",
        _REFINED - refined(1, _BEAM) > 0,
        "Section 4.2.3",
        "a few steps of refinement",
        statement_id="thesis:M-PADIR",
    ),
    _graded(
        "ten-steps-change-little",
        "Ten steps differ from four by less than half a point of BLEU.",
        (refined(10, _BEAM) - _REFINED).near(0, margin=0.5),
        published="33.49 and 33.63",
        statement_id="thesis:M-T41.steps",
    ),
    _graded(
        "as-good-as-the-twin",
        f"{_BY_REFINER} is within one point of the twin's, by five beams.",
        (_REFINED - _BEAMS).near(0, margin=1.0),
        published="33.49 and 33.50",
        statement_id="thesis:M-T41",
    ),
    _published(
        "it-stutters-twice-as-often-with-repeats-dropped",
        "With repeated tokens dropped after the last step, the refiner repeats words that the reference does not at "
        "more than twice the rate of the twin, greedily (its rate less twice the twin's).",
        refined(4, _BEAM, "stutter_dropped") - greedy("stutter_dropped") * 2 > 0,
        "Section 4.2.3",
        "2 or more times more frequent, after repeated tokens are dropped",
        statement_id="thesis:M-STUT",
    ),
    _speed(
        "the-median-is-twice-as-fast",
        "One sentence takes the twin, greedily, more than twice the median time of four steps by five hypotheses, on "
        "one thread.",
        latency(TWIN, "median") / latency(_FAST, "median") > 2,
        published="> 2x median latency",
    ),
    _speed(
        "the-slowest-percent-is-five-times-as-fast",
        "The 99th percentile is more than five times as fast.",
        latency(TWIN, "p99") / latency(_FAST, "p99") > 5,
        published="> 5x p99 latency",
    ),
    _recommended(
        "distillation-helps",
        "Of small refiners, after four steps, one that learned the twin's translations of its sources has a higher "
        "BLEU than one that learned the references.",
        small(config.DISTILLED) - small(PLAIN) > 0,
        published="critical",
        statement_id=f"{_TRAINING}.distillation",
    ),
    _recommended(
        "positional-attention-helps",
        "One without positional attention has a lower BLEU.",
        small(PLAIN) - small(config.NO_POSITIONS) > 0,
        published="critical",
        statement_id=f"{_TRAINING}.positions",
    ),
    _recommended(
        "much-noise-helps",
        "One that reads half of the target's tokens right while it is trained has a lower BLEU than one that reads "
        "15 % right.",
        small(PLAIN) - small(config.LITTLE_NOISE) > 0,
        published="large masking ratio",
        statement_id=f"{_TRAINING}.masking",
    ),
    _recommended(
        "two-stages-help",
        "One that is trained on a single stage has a lower BLEU after four steps than one trained on two, in as many "
        "updates.",
        small(PLAIN) - small(config.ONE_STAGE) > 0,
        source="Section 4.2.2, S = 2",
        published="S = 2 stages",
        statement_id=f"{_TRAINING}.stages",
    ),
    *make_attention_claims(
        "On held-out sentences of Tatoeba, at a reduced scale,", stats.attention, _SETTING
    ),
    _ours(
        "it-stutters-twice-as-often",
        "The refiner repeats words that the reference does not at more than twice the rate of the twin, greedily (its "
        "rate less twice the twin's, repeats not dropped).",
        refined(4, _BEAM, "stutter") - greedy("stutter") * 2 > 0,
        source="Section 4.2.3, before repeated tokens are dropped",
    ),
    _ours("twin-46", "The twin's greedy BLEU is above 46 (mean over sets).", _GREEDY > 46),
    _ours("refiner-39", f"{_BY_REFINER} is above 39 (mean over sets).", _REFINED > 39),
    _ours("twin-50", "The twin's greedy BLEU is above 50 (mean over sets).", _GREEDY > 50),
    _ours("refiner-46", f"{_BY_REFINER} is above 46 (mean over sets).", _REFINED > 46),
    _ours(
        "refiner-within-four",
        f"{_BY_REFINER} is less than four points below the twin's, greedily.",
        _REFINED - _GREEDY > -4,
    ),
    _ours(
        "the-twin-ranks-better",
        "Where the twin ranks the refiner's five hypotheses, in one more pass, BLEU after four steps is higher than by "
        "the refiner's own ranking.",
        _RERANKED - _REFINED > 0,
    ),
    _ours("rescored-46", f"{_BY_TWIN} is above 46 (mean over sets).", _RERANKED > 46),
    _ours(
        "rescored-within-four",
        f"{_BY_TWIN} is less than four points below the twin's, greedily.",
        _RERANKED - _GREEDY > -4,
    ),
    _ours(
        "rescored-within-four-of-beams",
        "It is less than four points below the twin's by five beams.",
        _RERANKED - _BEAMS > -4,
    ),
    _ours(
        "the-slowest-percent-is-twice-as-fast",
        "The 99th percentile of the time for one sentence is more than twice the refiner's.",
        latency(TWIN, "p99") / latency(_FAST, "p99") > 2,
    ),
    _ours(
        "long-sentences-are-twice-as-fast",
        "Where the reference has 20 tokens or more, the median is (the same sentences in every round).",
        latency(TWIN, "median", "long") / latency(_FAST, "median", "long") > 2,
    ),
    _ours(
        "hypotheses-of-length-help",
        "Five hypotheses have a higher BLEU than one, after four steps.",
        _REFINED - refined(4, 1) > 0,
    ),
    _ours(
        "mask-predict-is-better",
        "A pupil of the twin that learns to fill masks, and translates by mask-predict, has a higher BLEU than the "
        "refiner after as many steps, four, by five hypotheses, trained in as many updates.",
        _MASK_PREDICT - _REFINED > 0,
    ),
    _ours(
        "ten-steps-improve-mask-predict",
        "It has a higher BLEU after ten steps than after four.",
        score(MASK_PREDICT, 10, _BEAM) - _MASK_PREDICT > 0,
    ),
)

NUMBERS = {
    "twin": corpus(TWIN, 0, 1),
    "twin, beam": corpus(TWIN, 0, _BEAM),
    "refiner": corpus(REFINER, 4, _BEAM),
    "refiner, three lengths": corpus(REFINER, 4, 3),
    "refiner, rescored": corpus(RESCORED, 4, _BEAM),
    "refiner, one step": corpus(REFINER, 1, _BEAM),
    "refiner, ten steps": corpus(REFINER, 10, _BEAM),
    "mask-predict": corpus(MASK_PREDICT, 4, _BEAM),
    "mask-predict, ten steps": corpus(MASK_PREDICT, 10, _BEAM),
    "twin, familiar": corpus(TWIN, 0, 1, "familiar"),
    "twin, new": corpus(TWIN, 0, 1, "new"),
    "refiner, familiar": corpus(REFINER, 4, _BEAM, "familiar"),
    "refiner, new": corpus(REFINER, 4, _BEAM, "new"),
    "twin, stutter with repeats dropped": greedy("stutter_dropped"),
    "refiner, stutter with repeats dropped": refined(4, _BEAM, "stutter_dropped"),
    "twin, stutter": corpus(TWIN, 0, 1, column="stutter"),
    "refiner, stutter": corpus(REFINER, 4, _BEAM, column="stutter"),
    "passes of the twin": greedy("passes"),
    "passes of the refiner": refined(4, _BEAM, "passes"),
    "passes of the refiner, rescored": score(RESCORED, 4, _BEAM, "passes"),
    "median of the twin": latency(TWIN, "median"),
    "median of the refiner": latency(_FAST, "median"),
    "median of the refiner, rescored": latency(_RANKED, "median"),
    "median of one hypothesis": latency(_SINGLE, "median"),
    "p99 of the twin": latency(TWIN, "p99"),
    "p99 of the refiner": latency(_FAST, "p99"),
    "self-attention where it stutters": stats.attention("own_mean", True),
    "self-attention elsewhere": stats.attention("own_mean", False),
    "cross-attention where it stutters": stats.attention("variation_mean", True),
    "cross-attention elsewhere": stats.attention("variation_mean", False),
    "length, first guess": stats.length("first"),
    "length, among five": stats.length("among_five"),
    "parameters": stats.parameters(TWIN),
    "parameters of the refiner": stats.parameters(REFINER),
    "small, plain": small(PLAIN),
    "small, masks": small(config.MASKS),
    "small, plain, stutter": small(PLAIN, 4, "stutter"),
    "small, masks, stutter": small(config.MASKS, 4, "stutter"),
}
