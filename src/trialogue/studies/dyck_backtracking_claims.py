"""Claims of the study `dyck-backtracking`.

Claims and thresholds were fixed before the reported runs; the pilots are runs of the preset `default` on the
training seeds 100 to 104.
"""

from collections.abc import Callable

from pandas import DataFrame, Series

from trialogue.ledger import Claim
from trialogue.ledger.claims import Direction
from trialogue.ledger.replication import Replication
from trialogue.studies.dyck_backtracking_rows import (
    ALGORITHM,
    LOW,
    THESIS,
    by_seed,
    closing,
    diversity,
    errors_of,
    gain_at_backtracks,
    inducing,
    log_ratio,
    reduction,
    rows_of,
    share_of_remaining,
)

REPLICATIONS = 8
PILOT_SEEDS = (100, 101, 102, 103, 104)
PILOT: dict[str, tuple[float, ...]] = {
    "in-distribution-accuracy": (0.9992, 0.9976, 0.9994, 0.9968, 0.9996),
    "out-of-distribution-gap": (0.0215, 0.0111, 0.009, 0.013, 0.0104),
    "out-of-distribution-completion": (0.9913, 0.9863, 0.9888, 0.9707, 0.9767),
    "probe-accuracy": (0.8478, 0.8711, 0.8678, 0.7989, 0.9311),
    "forced-backtrack": (0.2317, 0.2256, 0.2866, 0.311, 0.3232),
    "longer-forced-backtracks-help": (0.2378, 0.2317, 0.2866, 0.3049, 0.2988),
    "verifier-at-errors": (0.1057, 0.0488, 0.0759, 0.0827, 0.1646),
    "longer-strides-help": (0.1585, 0.2541, 0.1728, 0.1382, 0.1463),
    "more-quota-helps": (0.0, 0.002, -0.002, 0.0061, 0.0061),
    "fewer-errors-nucleus": (0.3077, 0.2073, 0.0448, 0.3011, 0.4571),
    "fewer-errors-full": (0.7424, 0.5732, 0.2, 0.4257, 0.7148),
    "gain-survives-truncation": (0.4347, 0.3659, 0.1552, 0.1246, 0.2577),
    "random-is-as-good": (-0.0548, 0.0441, 0.1015, -0.0244, 0.0625),
    "greedy-is-as-good": (-0.0834, 0.0149, 0.0736, -0.0494, 0.0625),
    "exact-beats-trained": (-0.3472, -0.2556, -0.4807, -0.2757, -0.0395),
    "backtracks-were-necessary": (0.1038, 0.0385, 0.0529, 0.0626, 0.6556),
    "remaining-are-wrong-closers": (1.0, 1.0, 1.0, 0.9919, 0.9342),
    "remaining-have-no-quota": (0.0, 0.2615, 0.0469, 0.1382, 0.1184),
    "diversity-kept": (0.5256, 0.4632, 0.4476, 0.5202, 0.8962),
    "diversity-kept-low-threshold": (0.6758, 0.6687, 0.7778, 0.8162, 0.9717),
    "argmax-redo-matters": (0.392, 0.0864, -0.1303, 0.3879, 0.0625),
    "redo-is-the-whole-gain": (0.0367, -0.1413, -0.175, 0.0332, -0.5395),
}
"""Estimates of every claim from the pilot, one per training of `PILOT_SEEDS`."""


_TRAININGS = Replication(unit="training", count=REPLICATIONS, pilot_seeds=PILOT_SEEDS, pilot=PILOT)


def _claim(
    identity: str,
    statement: str,
    section: str,
    published: str,
    estimate: Callable[[DataFrame], "Series[float]"],
    threshold: float,
    direction: Direction,
    margin: float = 0.0,
) -> Claim:
    source = f"{THESIS}, {section}"
    return _TRAININGS.claim(identity, statement, source, published, estimate, threshold, direction, margin)


CLAIMS = (
    _claim(
        "in-distribution-accuracy",
        "The trained model closes brackets in-distribution with an accuracy of at least 0.999.",
        "3.2.1.1",
        "100 % in-distribution validation accuracy",
        lambda rows: closing(rows, "in-distribution"),
        0.999,
        "above",
    ),
    _claim(
        "out-of-distribution-gap",
        "Its accuracy on closing brackets is lower where p = 0.8.",
        "3.2.1.1",
        "not printed",
        lambda rows: closing(rows, "in-distribution") - closing(rows, "out-of-distribution"),
        0.0,
        "above",
    ),
    _claim(
        "out-of-distribution-completion",
        "With nucleus sampling at 0.9 it completes 94.23 % (within 2 points) of the out-of-distribution prompts.",
        "Definition 3.2.2",
        "0.9423; Table 3.3 implies 0.976",
        lambda rows: by_seed(rows_of(rows, "unseen", verifier="none", top_p=0.9), "accuracy"),
        0.9423,
        "equal",
        margin=0.02,
    ),
    _claim(
        "probe-accuracy",
        "A linear probe tells erroneous from correct prefixes with a validation accuracy above 0.85.",
        "3.2.1.2",
        "0.93 ± 0.039",
        lambda rows: by_seed(rows_of(rows, "probe"), "validation_accuracy"),
        0.85,
        "above",
    ),
    _claim(
        "forced-backtrack",
        "At error-inducing prefixes one forced backtrack of 8 tokens gains more than 10 points of accuracy.",
        "Table 3.1",
        "0.331 to 0.790",
        lambda rows: inducing(rows, "forced", stride=8) - inducing(rows, "nucleus"),
        0.1,
        "above",
    ),
    _claim(
        "longer-forced-backtracks-help",
        "A forced backtrack of 8 tokens gains more than one of 1 token.",
        "Table 3.1",
        "0.366 to 0.790",
        lambda rows: inducing(rows, "forced", stride=8) - inducing(rows, "forced", stride=1),
        0.0,
        "above",
    ),
    _claim(
        "verifier-at-errors",
        "At error-inducing prefixes the trained verifier raises the accuracy, mean over Q and B.",
        "Table 3.2",
        "0.331 to 0.620 (mean of nine cells)",
        lambda rows: inducing(rows, "backtracking") - inducing(rows, "nucleus"),
        0.0,
        "above",
    ),
    _claim(
        "longer-strides-help",
        "With the trained verifier a stride of 6 is more accurate than one of 2, mean over quotas.",
        "Table 3.2",
        "0.465 to 0.762",
        lambda rows: inducing(rows, "backtracking", stride=6) - inducing(rows, "backtracking", stride=2),
        0.0,
        "above",
    ),
    _claim(
        "more-quota-helps",
        "With the trained verifier a quota of 4 gains more than 5 points over one of 1, mean over strides.",
        "Table 3.2",
        "0.508 to 0.734",
        lambda rows: inducing(rows, "backtracking", quota=4) - inducing(rows, "backtracking", quota=1),
        0.05,
        "above",
    ),
    _claim(
        "fewer-errors-nucleus",
        "On unseen prompts Algorithm 1 (Q = B = 4) makes fewer errors at top-p 0.9 (share removed).",
        "Table 3.3",
        "25.3 % (240.0 to 179.4 of 10,000)",
        lambda rows: reduction(rows, 0.9),
        0.0,
        "above",
    ),
    _claim(
        "fewer-errors-full",
        "On unseen prompts Algorithm 1 (Q = B = 4) makes fewer errors at top-p 1 (share removed).",
        "Table 3.3",
        "56.7 % (461.8 to 200.0 of 10,000)",
        lambda rows: reduction(rows, 1.0),
        0.0,
        "above",
    ),
    _claim(
        "gain-survives-truncation",
        "It removes a larger share of the errors at top-p 1 than at top-p 0.9.",
        "Table 3.3",
        "56.7 % against 25.3 %",
        lambda rows: reduction(rows, 1.0) - reduction(rows, 0.9),
        0.0,
        "above",
    ),
    _claim(
        "random-is-as-good",
        "A random verifier leaves as many errors as the trained one at top-p 0.9 (log ratio within 0.25).",
        "Table 3.3 (control not in the thesis)",
        "not printed",
        lambda rows: log_ratio(errors_of(rows, "random", 0.9), errors_of(rows, "trained", 0.9)),
        0.0,
        "equal",
        margin=0.25,
    ),
    _claim(
        "greedy-is-as-good",
        "Greedy decoding without a verifier leaves as many errors as Algorithm 1 at top-p 0.9 (log ratio within 0.25).",
        "Table 3.3 (control not in the thesis)",
        "not printed",
        lambda rows: log_ratio(
            by_seed(rows_of(rows, "unseen", verifier="greedy"), "errors"), errors_of(rows, "trained", 0.9)
        ),
        0.0,
        "equal",
        margin=0.25,
    ),
    _claim(
        "exact-beats-trained",
        "The exact process verifier leaves fewer errors than the trained one at top-p 0.9 (log ratio).",
        "Table 3.3 (control not in the thesis)",
        "not printed",
        lambda rows: log_ratio(errors_of(rows, "exact", 0.9), errors_of(rows, "trained", 0.9)),
        0.0,
        "below",
    ),
    _claim(
        "backtracks-were-necessary",
        "Where the verifier went back, completing without it is less accurate than with it, mean over Q and B.",
        "Table 3.4",
        "0.373 against 0.620 (means of nine cells)",
        gain_at_backtracks,
        0.0,
        "above",
    ),
    _claim(
        "remaining-are-wrong-closers",
        "More than 90 % of the remaining errors are incorrect closing brackets.",
        "3.2.1.8",
        "222 of 225",
        lambda rows: share_of_remaining(rows, lambda left: left.error == "INCORRECT_CLOSING_BRACKET"),
        0.9,
        "above",
    ),
    _claim(
        "remaining-have-no-quota",
        "In more than 90 % of the remaining errors the quota was used up.",
        "3.2.1.8",
        "225 of 225",
        lambda rows: share_of_remaining(rows, lambda left: left.quota_left == 0),
        0.9,
        "above",
    ),
    _claim(
        "diversity-kept",
        "Algorithm 1 keeps the number of distinct completions within 10 % of sampling at top-p 1.",
        "Table 3.5",
        "5.52 against 5.84",
        lambda rows: diversity(rows, ALGORITHM) / diversity(rows, "no verifier, top-p 1.0"),
        1.0,
        "equal",
        margin=0.1,
    ),
    _claim(
        "diversity-kept-low-threshold",
        "With the low threshold it keeps the number within 10 %.",
        "Table 3.5 (threshold 0.1, not in the thesis)",
        "not printed",
        lambda rows: diversity(rows, LOW) / diversity(rows, "no verifier, top-p 1.0"),
        1.0,
        "equal",
        margin=0.1,
    ),
    _claim(
        "argmax-redo-matters",
        "Without the greedy redo more errors are left at top-p 0.9 (log ratio).",
        "Table 3.16",
        "179.4 against 245.8",
        lambda rows: log_ratio(errors_of(rows, "trained, no argmax", 0.9), errors_of(rows, "trained", 0.9)),
        0.0,
        "above",
    ),
    _claim(
        "redo-is-the-whole-gain",
        "Without the greedy redo Algorithm 1 leaves at least as many errors as no verifier at top-p 0.9 (log ratio).",
        "Tables 3.16 and 3.3",
        "245.8 against 240.0",
        lambda rows: log_ratio(errors_of(rows, "trained, no argmax", 0.9), errors_of(rows, "none", 0.9)),
        0.0,
        "above",
    ),
)
