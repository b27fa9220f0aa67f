"""Claims of the study: Figures 2.11 to 2.18, Table 2.6, footnotes, and Theorem 2.2.2 on trained networks."""

from functools import partial

from trialogue_lab.ledger import Claim, Precondition, Statistic, cited, ours
from trialogue_lab.studies.dyck_attention import statistics as stats
from trialogue_lab.studies.dyck_attention.networks import SETTINGS

_VARIATION = "Section 2.2.3.2"
_BALANCE = "Figure 2.13"
_CONTRAST = "thesis:D-Fig2.13.contrast"
_UPDATES = "Networks take 300 updates of 100 fresh strings. The released program trains for epochs over 100,000 tokens."
_STANDARD = (
    "Networks take 1,600 updates of 100 fresh strings. `night` has 8 networks of each kind. The source averages over "
    "40 initializations."
)
_PREFIX = "The prefix has 16 brackets of depth at most 4. The printed prefix of 17 brackets has depth 5."
_GRID = (
    "The source trains until convergence and prints means over 40 sentences, for an unknown number of networks. "
    "`night` has six networks per setting, with 1,200 updates at a learning rate of 0.003. `paper` has twelve, with "
    "7,200 updates at 0.001."
)
_ACCURACIES = (
    f"{_UPDATES} Accuracy is defined as in the text. `dyck-balance` has more networks, and also measures the accuracy "
    "of the released program."
)
_LEARNED = Precondition(
    "in every setting of Table 2.6, more than nine in ten networks predict over 97 % of the closing brackets",
    stats.learned_share() > 0.9,
)
_updates = partial(cited, setting=_UPDATES)
_standard = partial(cited, setting=_STANDARD)
_seeds = partial(
    cited, _VARIATION, statement_id="thesis:D-variation", grade=True, setting=f"{_STANDARD} {_PREFIX}"
)
_table = partial(cited, "Table 2.6", statement_id="thesis:D-Tab2.6", setting=_GRID, preconditions=(_LEARNED,))
_RELEASED = "words, released contrast"
_NO_POSITIONS = "0.80 times: 2.27 of 2.85, close to the random baseline"
_LINEAR_POSITIONS = "0.77 times: 2.20 of 2.85, close to the random baseline"


def _compare_violations(regularized: str, plain: str) -> Statistic:
    return stats.minimal(regularized, "balance") / stats.minimal(plain, "balance")


CLAIMS = (
    Claim(
        "minimal-networks-close-rightly",
        "Networks with a minimal first layer (2.55) close more than 97 % of brackets rightly at the trained length.",
        stats.closed("words") > 0.97,
        **_updates(_VARIATION, ">= 97 %", "thesis:D-train"),
    ),
    Claim(
        "standard-networks-close-rightly",
        "So do networks of two layers that read tokens, without positions.",
        stats.standard_closed("standard") > 0.97,
        **_standard(f"{_VARIATION}, footnote 18", ">= 97 %", "thesis:D-train"),
    ),
    Claim(
        "uniform-networks-close-rightly",
        "Networks of two layers whose attention is uniform close more than 99 % rightly.",
        stats.standard_closed("standard, uniform") > 0.99,
        **_standard("Footnote 11", "> 99 %", "thesis:D-C2.2.1.footnote"),
    ),
    Claim(
        "seeds-differ-as-random-attention",
        "The second layers of two seeds differ by more than 0.7 of what random causal attention does (no positions).",
        stats.standard_variation("standard", 2) > 0.7,
        **_seeds(_NO_POSITIONS),
    ),
    Claim(
        "seeds-differ-with-positions",
        "So they do with linear positions.",
        stats.standard_variation("standard, linear", 2) > 0.7,
        **_seeds(_LINEAR_POSITIONS),
    ),
    *(
        Claim(
            f"seeds-differ-close-to-random-attention{suffix}",
            "The second layers of two seeds differ by as much as random causal attention does, within a half of it "
            f"({positions}).",
            stats.standard_variation(arm, 2).near(1, margin=0.5),
            **_seeds(printed),
        )
        for suffix, positions, arm, printed in (
            ("", "no positions", "standard", _NO_POSITIONS),
            ("-with-positions", "linear positions", "standard, linear", _LINEAR_POSITIONS),
        )
    ),
    Claim(
        "minimal-seeds-agree-more",
        "With a minimal first layer two seeds differ by less than 0.2 of it.",
        stats.variation("words") < 0.2,
        **_seeds(
            "0.084 times: 0.24 of 2.85",
            statement_id="thesis:D-variation.minimal",
            setting=f"{_UPDATES} {_PREFIX}",
        ),
    ),
    Claim(
        "first-layers-agree",
        "First layers of two seeds differ by less than 0.1 of it, mean over the eight settings of Table 2.6.",
        stats.table_variation(1) < 0.1,
        **_table("0.014 to 0.068 times: 0.047 to 0.225 of 3.33", grade=True),
    ),
    Claim(
        "second-layers-differ-more-than-random",
        "Second layers differ by more than random causal attention, mean over the settings.",
        stats.table_variation(2) > 1,
        **_table("1.5 to 2.8 times: 5.072 to 9.313 of 3.33", grade=True),
    ),
    Claim(
        "third-layers-differ-more-than-second",
        "Third layers differ by more than second layers do, mean over the settings of three layers.",
        stats.table_variation(3, 3) - stats.table_variation(2, 3) > 0,
        **_table("by 5.2 to 5.8 times: 24.063 and 5.072 of 3.33, for one of four"),
    ),
    Claim(
        "balance-goes-with-generalising",
        "The further from balance, the more errors at lengths 400 to 500 (Spearman's correlation, trained on words).",
        stats.rank_correlation("words") > 0,
        **cited(_BALANCE, "negatively correlated with accuracy", "thesis:D-Fig2.13", setting=_ACCURACIES),
    ),
    Claim(
        "balance-says-less-of-prefixes",
        "That correlation is lower among networks that are trained on prefixes.",
        stats.rank_correlation("words") - stats.rank_correlation("prefixes") > 0,
        **_updates("Figure 2.17", "not presented as in the case of Dyck sequences", "thesis:D-prefix"),
    ),
    *(
        claim
        for ending, plain, arm, name, source, statement_id in (
            ("words", "words", "words, contrast", "the contrastive regulariser (2.58)", _BALANCE, _CONTRAST),
            ("released", "words", _RELEASED, "the regulariser of the released program", _BALANCE, _CONTRAST),
            (
                "prefixes",
                "prefixes",
                "prefixes, contrast",
                "the contrastive regulariser",
                "Figures 2.16 and 2.17",
                "thesis:D-prefix.contrast",
            ),
        )
        for claim in (
            Claim(
                f"contrast-restores-balance-{ending}",
                f"On {plain}, {name} lowers the balance violation (ratio).",
                _compare_violations(arm, plain) < 1,
                **_updates(source, "lower", statement_id),
            ),
            Claim(
                f"contrast-generalises-{ending}",
                f"Networks trained on {plain} close more brackets rightly at lengths 400 to 500 with {name}.",
                stats.minimal(arm, "outside") - stats.minimal(plain, "outside") > 0,
                **_updates(source, "higher", statement_id),
            ),
        )
    ),
    ours(
        "attention-is-not-that-of-a-stack",
        "Fewer than four in five closing brackets, (2.55), attend most to the innermost one that is open.",
        stats.minimal("words", "stack_1") < 0.8,
        "Figures 2.12 and 2.14",
    ),
    ours(
        "the-second-layer-is-no-stack",
        "Nor do they in the second layer of standard networks.",
        stats.standard("standard", "stack_2") < 0.8,
        "Figure 2.11",
    ),
    ours(
        "what-is-attended-to-matters",
        "Uniform attention in place of what a minimal network has learned costs more than 0.1 of its accuracy.",
        stats.minimal("words", "inside") - stats.minimal("words", "uniform") > 0.1,
        _VARIATION,
    ),
    ours(
        "contrast-halves-the-violation",
        "On words the regulariser lowers the violation to less than half.",
        _compare_violations("words, contrast", "words") < 0.5,
        _BALANCE,
    ),
    ours(
        "weight-decay-restores-balance",
        "On words, weight decay (2.41) with lambda = 0.001 lowers the violation (ratio).",
        _compare_violations("words, decay", "words") < 1,
        "Corollary 2.2.2",
    ),
    ours(
        "the-inequalities-hold-on-what-was-trained",
        "No case of Theorem 2.2.2's inequalities, constants corrected, fails on a trained network.",
        stats.inequalities_failed() < 0.5,
        "Theorem 2.2.2",
    ),
)

NUMBERS = {
    "minimal, inside": stats.minimal("words", "inside"),
    "minimal, outside": stats.minimal("words", "outside"),
    "minimal with contrast, outside": stats.minimal("words, contrast", "outside"),
    "minimal, violation": stats.minimal("words", "balance"),
    "minimal with contrast, violation": stats.minimal("words, contrast", "balance"),
    "minimal with the released contrast, outside": stats.minimal(_RELEASED, "outside"),
    "minimal with the released contrast, violation": stats.minimal(_RELEASED, "balance"),
    "minimal with weight decay, violation": stats.minimal("words, decay", "balance"),
    "minimal with weight decay, outside": stats.minimal("words, decay", "outside"),
    "log of the decay of Corollary 2.2.2": stats.minimal("words", "log_decay"),
    "violation and error, words": stats.rank_correlation("words"),
    "violation and error, prefixes": stats.rank_correlation("prefixes"),
    "minimal, stack": stats.minimal("words", "stack_1"),
    "minimal, ablated": stats.minimal("words", "uniform"),
    "standard, inside": stats.standard("standard", "inside"),
    "standard, stack": stats.standard("standard", "stack_2"),
    "variation of minimal networks": stats.variation("words"),
    "variation of second layers": stats.standard_variation("standard", 2),
    **{f"Table 2.6, layer {layer}": stats.table_variation(layer, max(2, layer)) for layer in (1, 2, 3)},
    **{f"Table 2.6, right, {setting}": stats.setting_closed(setting) for setting in SETTINGS},
    "Table 2.6, smallest share of learned networks": stats.learned_share(),
    "trained networks with a positive side": stats.positive_share(),
}
