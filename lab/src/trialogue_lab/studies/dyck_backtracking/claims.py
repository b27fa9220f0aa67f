"""Claims of the study, and the quantities that texts quote."""

from trialogue_lab.ledger import Claim
from trialogue_lab.studies.dyck_backtracking.control_claims import CONTROL_CLAIMS
from trialogue_lab.studies.dyck_backtracking.cost_claims import COST_CLAIMS, SMALL_NETWORKS
from trialogue_lab.studies.dyck_backtracking.released_claims import RELEASED_CLAIMS
from trialogue_lab.studies.dyck_backtracking.statistics import (
    ALGORITHM,
    LOW,
    SAMPLING,
    clustered,
    diversity,
    errors_ratio,
    gain_at_backtracks,
    inducing,
    learned,
    pooled_out_of_quota,
    prepared,
    probe,
    queries_ratio,
    queries_ratio_until_correct,
    removed,
    share_of_remaining,
    unseen,
)

_LOGARITHM = "a ratio is estimated as its logarithm"
_NETWORKS = (
    "The networks are small (two layers of width 64; the source's have six of width 512) and complete about 99 % of "
    "the prompts without a verifier; the source's complete 94 to 98 %."
)
_PROMPTS = (
    "At the stated prompt lengths, ten completions from the exact distribution hold about three distinct ones; the "
    "source prints between five and six, which needs shorter prompts."
)
_REMOVED = (
    ("nucleus", 0.9, "25.3 % (240.0 to 179.4 of 10,000), a ratio of 0.75"),
    ("full", 1.0, "56.7 % (461.8 to 200.0 of 10,000), a ratio of 0.43"),
)

CLAIMS = (
    Claim(
        "out-of-distribution-gap",
        "Trained models predict fewer closing brackets where the types of brackets are drawn otherwise (difference of "
        "accuracies).",
        learned("closing_accuracy", "in-distribution") - learned("closing_accuracy", "out-of-distribution")
        > 0,
        "3.2.1.1",
        statement_id="thesis:V-LM",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "completes-as-published",
        "With nucleus sampling at 0.9 it completes 94.23 % (within 3 points) of the out-of-distribution prompts.",
        unseen("none", 0.9, "accuracy").near(0.9423, margin=0.03),
        "Definition 3.2.2",
        "0.9423; Table 3.3 implies 0.976",
        statement_id="thesis:V-OOD",
        setting=_NETWORKS,
    ),
    Claim(
        "out-of-distribution-completion",
        "With nucleus sampling at 0.9 it completes 94.23 % (within 2 points) of the out-of-distribution prompts.",
        unseen("none", 0.9, "accuracy").near(0.9423, margin=0.02),
        "Definition 3.2.2",
        "0.9423; Table 3.3 implies 0.976",
        "ours",
    ),
    Claim(
        "probe-accuracy",
        "A linear probe tells erroneous from correct prefixes with a validation accuracy above 0.85.",
        probe() > 0.85,
        "3.2.1.2",
        "0.93 ± 0.039",
        grade=True,
        statement_id="thesis:V-VER",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "errors-form-clusters",
        "Two clusters of hidden states hold one label of prefixes more than they hold one of shuffled labels (share).",
        clustered(2) - clustered(2, "shuffled_purity") > 0,
        "Figure 3.1",
        "incorrect strings form just a few clusters",
        statement_id="thesis:V-F31",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "forced-backtrack",
        "At error-inducing prefixes one forced backtrack of 8 tokens gains more than 10 points of accuracy.",
        inducing("forced", stride=8) - inducing("nucleus") > 0.1,
        "Table 3.1",
        "0.331 to 0.790, a gain of 0.459",
        grade=True,
        statement_id="thesis:V-T31",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "longer-forced-backtracks-help",
        "A forced backtrack of 8 tokens gains more than one of 1 token.",
        inducing("forced", stride=8) - inducing("forced", stride=1) > 0,
        "Table 3.1",
        "0.366 to 0.790, a gain of 0.424",
        statement_id="thesis:V-T31",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "verifier-gains-five-points",
        "At error-inducing prefixes the trained verifier raises the accuracy by more than 5 points, mean over Q and B.",
        inducing("backtracking") - inducing("nucleus") > 0.05,
        "Table 3.2",
        "0.331 to 0.620 (mean of nine cells), a gain of 0.289",
        grade=True,
        statement_id="thesis:V-T32",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "verifier-at-errors",
        "At error-inducing prefixes the trained verifier raises the accuracy, mean over Q and B.",
        inducing("backtracking") - inducing("nucleus") > 0,
        "Table 3.2",
        "0.331 to 0.620 (mean of nine cells), a gain of 0.289",
        "ours",
    ),
    Claim(
        "longer-strides-help",
        "With the trained verifier a stride of 6 is more accurate than one of 2, mean over quotas.",
        inducing("backtracking", stride=6) - inducing("backtracking", stride=2) > 0,
        "Table 3.2",
        "0.465 to 0.762, a gain of 0.297",
        statement_id="thesis:V-T32",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "larger-quota-helps",
        "With the trained verifier a quota of 4 is more accurate than one of 1, mean over strides.",
        inducing("backtracking", quota=4) - inducing("backtracking", quota=1) > 0,
        "Table 3.2",
        "0.508 to 0.734, a gain of 0.226",
        statement_id="thesis:V-T32",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "more-quota-helps",
        "With the trained verifier a quota of 4 gains more than 5 points over one of 1, mean over strides.",
        inducing("backtracking", quota=4) - inducing("backtracking", quota=1) > 0.05,
        "Table 3.2",
        "0.508 to 0.734, a gain of 0.226",
        "ours",
    ),
    *(
        Claim(
            f"removes-a-fifth-{name}",
            f"On unseen prompts Algorithm 1 (Q = B = 4) removes more than 20 % of the errors at top-p {top_p:g} "
            "(errors left, as a ratio).",
            errors_ratio("trained", "none", top_p) < 0.8,
            "Table 3.3",
            published,
            grade=True,
            statement_id="thesis:V-T33",
            setting=SMALL_NETWORKS,
        )
        for name, top_p, published in _REMOVED
    ),
    *(
        Claim(
            f"fewer-errors-{name}",
            f"On unseen prompts Algorithm 1 (Q = B = 4) makes fewer errors at top-p {top_p:g} (log ratio).",
            removed(top_p).corrected(_LOGARITHM) > 0,
            "Table 3.3",
            published,
            "ours",
        )
        for name, top_p, published in _REMOVED
    ),
    Claim(
        "gain-survives-truncation",
        "It removes a larger share of the errors at top-p 1 than at top-p 0.9 (difference of log ratios).",
        (removed(1.0) - removed(0.9)).corrected(_LOGARITHM) > 0,
        "Table 3.3",
        "56.7 % against 25.3 %, a difference of log ratios of 0.55",
        statement_id="thesis:V-T33",
        setting=SMALL_NETWORKS,
    ),
    *CONTROL_CLAIMS,
    Claim(
        "backtracks-were-necessary",
        "Where the verifier went back, completing without it is less accurate than with it, mean over Q and B.",
        gain_at_backtracks() > 0,
        "Table 3.4",
        "0.373 against 0.620 (means of nine cells), a gain of 0.247",
        statement_id="thesis:V-T34",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "remaining-are-wrong-closers",
        "More than 90 % of the remaining errors are incorrect closing brackets.",
        share_of_remaining("error", "INCORRECT_CLOSING_BRACKET") > 0.9,
        "3.2.1.8",
        "222 of 225",
        grade=True,
        statement_id="thesis:V-ERR.brackets",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "remaining-have-no-quota",
        "In more than 90 % of the remaining errors the quota was used up.",
        share_of_remaining("quota_left", 0) > 0.9,
        "3.2.1.8",
        "225 of 225",
        grade=True,
        statement_id="thesis:V-ERR.quota",
        setting=_NETWORKS,
    ),
    Claim(
        "diversity-kept",
        "Algorithm 1 keeps the number of distinct completions within 10 % of sampling at top-p 1.",
        (diversity(ALGORITHM) / diversity(SAMPLING)).near(1, margin=0.1),
        "Table 3.5",
        "5.52 against 5.84",
        grade=True,
        statement_id="thesis:V-T35",
        setting=f"{SMALL_NETWORKS} {_PROMPTS}",
    ),
    Claim(
        "diversity-kept-low-threshold",
        "With the low threshold it keeps the number within 10 %.",
        (diversity(LOW) / diversity(SAMPLING)).near(1, margin=0.1),
        "Table 3.5 (threshold 0.1, not in the thesis)",
        origin="ours",
    ),
    Claim(
        "argmax-redo-matters",
        "Without the greedy redo more errors are left at top-p 0.9 (log ratio).",
        errors_ratio("trained, no argmax", "trained", 0.9).log() > 0,
        "Table 3.16",
        "179.4 against 245.8, a log ratio of 0.31",
        statement_id="thesis:V-T316",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "redo-is-the-whole-gain",
        "Without the greedy redo Algorithm 1 leaves more errors than no verifier at top-p 0.9 (log ratio).",
        errors_ratio("trained, no argmax", "none", 0.9).log() > 0,
        "Tables 3.16 and 3.3",
        "245.8 against 240.0, a log ratio of 0.02",
        statement_id="thesis:V-T316.baseline",
        setting=SMALL_NETWORKS,
    ),
    *RELEASED_CLAIMS,
    *COST_CLAIMS,
)

NUMBERS = {
    "share of trainings above 0.999 in distribution": prepared(),
    "ratio of queries at top-p 0.9": queries_ratio(0.9),
    "ratio of queries at top-p 1": queries_ratio(1.0),
    "ratio of queries until correct at top-p 0.9": queries_ratio_until_correct(0.9),
    "errors with Algorithm 1 as released": unseen("trained, as released", 0.9, "per_10000"),
    "queries of Algorithm 1 as released": unseen("trained, as released", 0.9, "queries"),
    "same completions at a quota of 4": inducing("backtracking", "same_as_at_first_quota", quota=4),
    "purity of two clusters": clustered(2),
    "errors without a verifier": unseen("none", 0.9, "per_10000"),
    "errors with Algorithm 1": unseen("trained", 0.9, "per_10000"),
    "errors redoing what was erased": unseen("trained, redo what was erased", 0.9, "per_10000"),
    "queries of Algorithm 1": unseen("trained", 0.9, "queries"),
    "queries redoing what was erased": unseen("trained, redo what was erased", 0.9, "queries"),
    "share out of quota": share_of_remaining("quota_left", 0),
    "pooled share out of quota": pooled_out_of_quota(),
    "share of wrong closers": share_of_remaining("error", "INCORRECT_CLOSING_BRACKET"),
}
