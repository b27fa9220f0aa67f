"""Claims of the study, and the numbers that documentation pages quote."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, largest, ours, smallest
from trialogue_lab.studies.exact_rejection import statistics as stats

_EXACT = "sampler == 'adaptive rejection'"
_CARS, _ASAP = "CARS (arXiv 2510.01902), abstract", "Grammar-aligned decoding (arXiv 2405.21047)"
_TREES = "Exact distributions on random trees. The source draws from language models."
_ours = partial(
    ours, source="Measured for the documentation of the sampler AdaptiveRejection, not in the sources"
)

CLAIMS = (
    Claim(
        "every-sample-is-exact",
        "The first sample, and a sample after each of 40 successive ones with a shared table, has exactly the "
        "restricted distribution (largest error of an output probability over 30 seeds of trees, for functions and "
        "masks as verifiers).",
        largest("tree", "first_error", "later_error", where=_EXACT) < 1e-9,
        **cited(
            _CARS,
            "samples exactly follow the constrained distribution",
            "cars:abstract.exact",
            setting=_TREES,
        ),
    ),
    Claim(
        "acceptance-rises-along-any-history",
        "After any rejected attempt of any history of the first sample, the probability that the next attempt is "
        "accepted is not smaller (smallest increase over 30 seeds of trees).",
        smallest("tree", "acceptance_increase", where=_EXACT) > -1e-12,
        **cited(_CARS, "acceptance rates improve monotonically", "cars:abstract.monotone", setting=_TREES),
    ),
    Claim(
        "asap-starts-biased",
        "The first sample of ASAp does not have the restricted distribution (smallest total variation over nine trees "
        "with four allowed outputs).",
        smallest("rare tree", "tv", where="earlier == 0") > 1e-9,
        **cited(
            f"{_ASAP}, construction of the algorithm",
            "approximations start at 1: the first sample is masked decoding, which distorts the distribution",
            "asap:algorithm.first-sample",
            setting=_TREES,
        ),
    ),
    _ours(
        "second-sample-is-independent-of-the-first",
        "The second sample has the restricted distribution after any table that the first can leave, so that the joint "
        "distribution of both is the product (largest error over 30 seeds of trees).",
        largest("tree", "second_error", where=_EXACT) < 1e-9,
    ),
    _ours(
        "the-check-rejects-asap",
        "The same check finds an error above 0.001 in ASAp on every tree (smallest, over 30 seeds of trees and both "
        "kinds of verifiers, of the largest error).",
        smallest("tree", "second_error", where="sampler == 'ASAp'") > 1e-3,
        source=_ASAP,
    ),
    _ours(
        "first-output-within-60-calls",
        "The first exact output of a question of constrained-law takes fewer than 60 model calls, recalled prefixes "
        "included (geometric mean over questions).",
        stats.question_calls("first").as_ratio() < 60,
    ),
    _ours(
        "outputs-with-a-shared-table-within-12-calls",
        "64 successive exact outputs of a question that share a table take fewer than 12 model calls on average, "
        "recalled prefixes included (geometric mean over questions).",
        stats.question_calls("shared").as_ratio() < 12,
    ),
    _ours(
        "outputs-of-the-model-are-exact",
        "64 exact outputs of a question are as far from the restricted distribution, in total variation, as 64 exact "
        "samples are expected to be, within 0.05.",
        stats.mean_of_question("tv - drawn_tv").near(0, margin=0.05),
    ),
    _ours(
        "cheaper-than-stopping-at-the-first-rejected-token",
        "Rejection that stops at the first rejected token takes more than ten times as many model calls as the first "
        "output of rejection that learns (geometric mean over questions).",
        stats.of_question("stopping_calls") / stats.question_calls("first") > 10,
    ),
    _ours(
        "most-requests-within-three-masks",
        "For more than half of the requests for JSON an exact output takes at most three times the model calls of "
        "masked decoding, calls of failed outputs included.",
        stats.share_within(3.0) > 0.5,
    ),
    _ours(
        "nine-of-ten-requests-within-ten-masks",
        "For more than nine of ten requests for JSON an exact output takes at most ten times the model calls of masked "
        "decoding, calls of failed outputs included.",
        stats.share_within(10.0) > 0.9,
    ),
    _ours(
        "few-outputs-beyond-the-budget",
        "Fewer than a tenth of the outputs of requests fail because 32 attempts are used up.",
        stats.beyond_budget() < 0.1,
    ),
    _ours(
        "better-than-weights-at-equal-calls",
        "For more than half of the requests, exact outputs give more effective samples per model call than weighted "
        "outputs of masked decoding.",
        stats.better_than_weights() > 0.5,
    ),
    _ours(
        "a-table-of-four-outputs-halves-the-calls",
        "Outputs of requests that start from the tables of four earlier ones take less than half as many model calls "
        "as outputs that start from an empty table (geometric mean over requests).",
        stats.request_calls(1) / stats.request_calls(0) < 0.5,
    ),
)

NUMBERS = {
    "trees on which the check rejects ASAp": stats.rejected_trees("ASAp", 1e-3),
    "largest distance of ASAp": largest("rare tree", "tv", where="earlier == 0"),
    "first output: calls": stats.question_calls("first").as_ratio(),
    "first output: distinct calls": stats.first_of_shared("distinct").as_ratio(),
    "shared table: calls": stats.question_calls("shared").as_ratio(),
    "shared table: distinct calls": stats.question_calls("shared", "distinct").as_ratio(),
    "shared table: valid": stats.mean_of_question("valid"),
    "shared table: seconds": stats.mean_of_question("cpu_seconds"),
    "total variation": stats.mean_of_question("tv"),
    "expected total variation of exact samples": stats.mean_of_question("drawn_tv"),
    "masked: calls": stats.question_calls("masked").as_ratio(),
    "masked: distinct calls": stats.question_calls("masked", "distinct").as_ratio(),
    "rejection that stops early: calls": stats.of_question("stopping_calls").as_ratio(),
    "requests within three masks": stats.share_within(3.0),
    "requests within ten masks": stats.share_within(10.0),
    "outputs beyond the budget": stats.beyond_budget(),
}
