"""Claims of the study, and the numbers that documentation pages quote."""

from functools import partial

from trialogue_lab.ledger import NOT_PRINTED, Claim, Statistic, cited, ours
from trialogue_lab.studies.dyck_backtracking import statistics as stats
from trialogue_lab.studies.dyck_backtracking.cost_claims import COST_CLAIMS, SMALL_NETWORKS, thesis

_LOGARITHM = "a ratio is estimated as its logarithm"
_NETWORKS = (
    f"{SMALL_NETWORKS} Without a verifier, they complete about 99 % of the prompts. Those of the source complete 94 "
    "to 98 %."
)
_PROMPTS = (
    f"{SMALL_NETWORKS} At the stated prompt lengths, ten completions from the exact distribution contain about three "
    "distinct ones. The source prints between five and six, which requires shorter prompts."
)
_networks = partial(cited, setting=_NETWORKS)
_table_3_2 = partial(ours, source="Table 3.2")
_control = partial(ours, source="Table 3.3 (control not in the thesis)")
_REMOVED = (
    ("nucleus", 0.9, "25.3 % (240.0 to 179.4 of 10,000), a ratio of 0.75"),
    ("full", 1.0, "56.7 % (461.8 to 200.0 of 10,000), a ratio of 0.43"),
)
_MEAN_GAIN = "0.331 to 0.620 (mean of nine cells), a gain of 0.289"
_QUOTA_GAIN = "0.508 to 0.734, a gain of 0.226"


def _verifier_gain() -> Statistic:
    return stats.inducing("backtracking") - stats.inducing("nucleus")


def _quota_gain(sampler: str = "backtracking") -> Statistic:
    return stats.inducing(sampler, quota=4) - stats.inducing(sampler, quota=1)


def _stride_gain(sampler: str, longer: int, shorter: int) -> Statistic:
    return stats.inducing(sampler, stride=longer) - stats.inducing(sampler, stride=shorter)


def _log_errors(first: str, second: str, top_p: float = 0.9) -> Statistic:
    return stats.errors_ratio(first, second, top_p).log()


CLAIMS = (
    Claim(
        "out-of-distribution-gap",
        "Trained models predict fewer closing brackets where the types of brackets are drawn otherwise (difference of "
        "accuracies).",
        stats.learned("closing_accuracy", "in-distribution")
        - stats.learned("closing_accuracy", "out-of-distribution")
        > 0,
        **thesis("3.2.1.1", NOT_PRINTED, "thesis:V-LM"),
    ),
    Claim(
        "completes-as-published",
        "With nucleus sampling at 0.9 it completes 94.23 % (within 3 points) of the out-of-distribution prompts.",
        stats.unseen("none", 0.9, "accuracy").near(0.9423, margin=0.03),
        **_networks("Definition 3.2.2", "0.9423; Table 3.3 implies 0.976", "thesis:V-OOD"),
    ),
    ours(
        "out-of-distribution-completion",
        "With nucleus sampling at 0.9 it completes 94.23 % (within 2 points) of the out-of-distribution prompts.",
        stats.unseen("none", 0.9, "accuracy").near(0.9423, margin=0.02),
        "Definition 3.2.2",
        "0.9423; Table 3.3 implies 0.976",
    ),
    Claim(
        "probe-accuracy",
        "A linear probe tells erroneous from correct prefixes with a validation accuracy above 0.85.",
        stats.probe() > 0.85,
        **thesis("3.2.1.2", "0.93 ± 0.039", "thesis:V-VER", grade=True),
    ),
    Claim(
        "errors-form-clusters",
        "Two clusters of hidden states hold one label of prefixes more than they hold one of shuffled labels (share).",
        stats.clustered(2) - stats.clustered(2, "shuffled_purity") > 0,
        **thesis("Figure 3.1", "incorrect strings form just a few clusters", "thesis:V-F31"),
    ),
    Claim(
        "forced-backtrack",
        "At error-inducing prefixes one forced backtrack of 8 tokens gains more than 10 points of accuracy.",
        stats.inducing("forced", stride=8) - stats.inducing("nucleus") > 0.1,
        **thesis("Table 3.1", "0.331 to 0.790, a gain of 0.459", "thesis:V-T31", grade=True),
    ),
    Claim(
        "longer-forced-backtracks-help",
        "A forced backtrack of 8 tokens gains more than one of 1 token.",
        _stride_gain("forced", 8, 1) > 0,
        **thesis("Table 3.1", "0.366 to 0.790, a gain of 0.424", "thesis:V-T31"),
    ),
    Claim(
        "verifier-gains-five-points",
        "At error-inducing prefixes the trained verifier raises the accuracy by more than 5 points, mean over Q and B.",
        _verifier_gain() > 0.05,
        **thesis("Table 3.2", _MEAN_GAIN, "thesis:V-T32", grade=True),
    ),
    _table_3_2(
        "verifier-at-errors",
        "At error-inducing prefixes the trained verifier raises the accuracy, mean over Q and B.",
        _verifier_gain() > 0,
        published=_MEAN_GAIN,
    ),
    Claim(
        "longer-strides-help",
        "With the trained verifier a stride of 6 is more accurate than one of 2, mean over quotas.",
        _stride_gain("backtracking", 6, 2) > 0,
        **thesis("Table 3.2", "0.465 to 0.762, a gain of 0.297", "thesis:V-T32"),
    ),
    Claim(
        "larger-quota-helps",
        "With the trained verifier a quota of 4 is more accurate than one of 1, mean over strides.",
        _quota_gain() > 0,
        **thesis("Table 3.2", _QUOTA_GAIN, "thesis:V-T32"),
    ),
    _table_3_2(
        "more-quota-helps",
        "With the trained verifier a quota of 4 gains more than 5 points over one of 1, mean over strides.",
        _quota_gain() > 0.05,
        published=_QUOTA_GAIN,
    ),
    *(
        Claim(
            f"removes-a-fifth-{name}",
            f"On unseen prompts Algorithm 1 (Q = B = 4) removes more than 20 % of the errors at top-p {top_p:g} "
            "(errors left, as a ratio).",
            stats.errors_ratio("trained", "none", top_p) < 0.8,
            **thesis("Table 3.3", published, "thesis:V-T33", grade=True),
        )
        for name, top_p, published in _REMOVED
    ),
    *(
        ours(
            f"fewer-errors-{name}",
            f"On unseen prompts Algorithm 1 (Q = B = 4) makes fewer errors at top-p {top_p:g} (log ratio).",
            _log_errors("none", "trained", top_p).corrected(_LOGARITHM) > 0,
            "Table 3.3",
            published,
        )
        for name, top_p, published in _REMOVED
    ),
    Claim(
        "gain-survives-truncation",
        "It removes a larger share of the errors at top-p 1 than at top-p 0.9 (difference of log ratios).",
        (_log_errors("none", "trained", 1.0) - _log_errors("none", "trained")).corrected(_LOGARITHM) > 0,
        **thesis("Table 3.3", "56.7 % against 25.3 %, a difference of log ratios of 0.55", "thesis:V-T33"),
    ),
    _control(
        "random-is-as-good",
        "A random verifier leaves as many errors as the trained one at top-p 0.9 (log ratio within 0.25).",
        _log_errors("random", "trained").near(0, margin=0.25),
    ),
    _control(
        "greedy-is-as-good",
        "Greedy decoding without a verifier leaves as many errors as Algorithm 1 at top-p 0.9 (log ratio within 0.25).",
        _log_errors("greedy", "trained").near(0, margin=0.25),
    ),
    _control(
        "trained-beats-random",
        "The trained verifier leaves fewer errors than a random one at top-p 0.9 (log ratio).",
        _log_errors("trained", "random") < 0,
    ),
    _control(
        "trained-beats-greedy",
        "Algorithm 1 with the trained verifier leaves fewer errors at top-p 0.9 than greedy decoding (log ratio).",
        _log_errors("greedy", "trained") > 0,
    ),
    _control(
        "exact-beats-trained",
        "The exact process verifier leaves fewer errors than the trained one at top-p 0.9 (log ratio).",
        _log_errors("exact", "trained") < 0,
    ),
    Claim(
        "backtracks-were-necessary",
        "Where the verifier went back, completing without it is less accurate than with it, mean over Q and B.",
        stats.gain_at_backtracks() > 0,
        **thesis("Table 3.4", "0.373 against 0.620 (means of nine cells), a gain of 0.247", "thesis:V-T34"),
    ),
    Claim(
        "remaining-are-wrong-closers",
        "More than 90 % of the remaining errors are incorrect closing brackets.",
        stats.share_of_remaining("error", "INCORRECT_CLOSING_BRACKET") > 0.9,
        **thesis("3.2.1.8", "222 of 225", "thesis:V-ERR.brackets", grade=True),
    ),
    Claim(
        "remaining-have-no-quota",
        "In more than 90 % of the remaining errors the quota was used up.",
        stats.share_of_remaining("quota_left", 0) > 0.9,
        **_networks("3.2.1.8", "225 of 225", "thesis:V-ERR.quota", grade=True),
    ),
    Claim(
        "diversity-kept",
        "Algorithm 1 keeps the number of distinct completions within 10 % of sampling at top-p 1.",
        (stats.diversity(stats.ALGORITHM) / stats.diversity(stats.SAMPLING)).near(1, margin=0.1),
        **cited("Table 3.5", "5.52 against 5.84", "thesis:V-T35", grade=True, setting=_PROMPTS),
    ),
    ours(
        "diversity-kept-low-threshold",
        "With the low threshold it keeps the number within 10 %.",
        (stats.diversity(stats.LOW) / stats.diversity(stats.SAMPLING)).near(1, margin=0.1),
        "Table 3.5 (threshold 0.1, not in the thesis)",
    ),
    Claim(
        "argmax-redo-matters",
        "Without the greedy redo more errors are left at top-p 0.9 (log ratio).",
        _log_errors("trained, no argmax", "trained") > 0,
        **thesis("Table 3.16", "179.4 against 245.8, a log ratio of 0.31", "thesis:V-T316"),
    ),
    Claim(
        "redo-is-the-whole-gain",
        "Without the greedy redo Algorithm 1 leaves more errors than no verifier at top-p 0.9 (log ratio).",
        _log_errors("trained, no argmax", "none") > 0,
        **thesis("Tables 3.16 and 3.3", "245.8 against 240.0, a log ratio of 0.02", "thesis:V-T316.baseline"),
    ),
    _table_3_2(
        "larger-quota-helps-as-released",
        "With the redo as released a quota of 4 is more accurate than one of 1, mean over strides.",
        _quota_gain("released") > 0,
        published=_QUOTA_GAIN,
    ),
    _table_3_2(
        "longer-strides-help-as-released",
        "With the redo as released a stride of 6 is more accurate than one of 2, mean over quotas.",
        _stride_gain("released", 6, 2) > 0,
        published="0.465 to 0.762",
    ),
    _table_3_2(
        "quota-changes-nothing-as-printed",
        "As printed, a quota of 4 is as accurate as one of 1, mean over strides (difference within 2 points).",
        _quota_gain().near(0, margin=0.02),
        published=_QUOTA_GAIN,
    ),
    ours(
        "released-is-more-accurate",
        "With the redo as released the trained verifier gains more than as printed, mean over Q and B.",
        stats.inducing("released") - stats.inducing("backtracking") > 0,
        "Table 3.2 (other interpretation of the redo)",
        "0.620 (mean of nine cells)",
    ),
    *COST_CLAIMS,
)

NUMBERS = {
    "share of trainings above 0.999 in distribution": stats.prepared(),
    "ratio of queries at top-p 0.9": stats.queries_ratio(0.9),
    "ratio of queries at top-p 1": stats.queries_ratio(1.0),
    "ratio of queries until correct at top-p 0.9": stats.queries_ratio(0.9, "queries_until_correct"),
    "errors with Algorithm 1 as released": stats.unseen("trained, as released", 0.9, "per_10000"),
    "queries of Algorithm 1 as released": stats.unseen("trained, as released", 0.9, "queries"),
    "same completions at a quota of 4": stats.inducing("backtracking", "same_as_at_first_quota", quota=4),
    "purity of two clusters": stats.clustered(2),
    "errors without a verifier": stats.unseen("none", 0.9, "per_10000"),
    "errors with Algorithm 1": stats.unseen("trained", 0.9, "per_10000"),
    "errors redoing what was erased": stats.unseen("trained, redo what was erased", 0.9, "per_10000"),
    "queries of Algorithm 1": stats.unseen("trained", 0.9, "queries"),
    "queries redoing what was erased": stats.unseen("trained, redo what was erased", 0.9, "queries"),
    "share out of quota": stats.share_of_remaining("quota_left", 0),
    "pooled share out of quota": stats.pooled_out_of_quota(),
    "share of wrong closers": stats.share_of_remaining("error", "INCORRECT_CLOSING_BRACKET"),
}
