"""Claims of the study: Figures 2.11 to 2.18, Table 2.6, footnotes, and Theorem 2.2.2 on what was trained."""

from trialogue_lab.ledger import NOT_PRINTED, Claim, Criterion, Precondition
from trialogue_lab.studies.dyck_attention.networks import SETTINGS
from trialogue_lab.studies.dyck_attention.statistics import (
    closed,
    inequalities_failed,
    learned_share,
    minimal,
    positive_share,
    rank_correlation,
    setting_closed,
    standard,
    standard_closed,
    standard_variation,
    table_variation,
    variation,
)

_VARIATION = "Section 2.2.3.2"
_TABLE = "Table 2.6"
_BALANCE = "Figure 2.13"
_PREFIXES = "Figures 2.16 and 2.17"
_UPDATES = (
    "300 updates of 100 fresh strings, where the released program trains for epochs over 100,000 tokens."
)
_STANDARD = (
    "Networks take 1,600 updates of 100 fresh strings, and `night` has 8 of a kind where the source averages over 40 "
    "initialisations."
)
_PREFIX = "The prefix has 16 brackets of depth at most 4, where the printed one of 17 has depth 5."
_GRID = (
    "The source trains to convergence and prints means over 40 sentences, for an unstated number of networks; `night` "
    "has six networks of each setting and 1,200 updates at a rate of 0.003, `paper` twelve and 7,200 at 0.001."
)
_LEARNED = Precondition(
    "in every setting of Table 2.6 more than nine in ten networks close more than 97 % of brackets rightly",
    learned_share() > 0.9,
)


def _regularised(name: str, plain: str, contrast: str, what: str, source: str) -> tuple[Claim, ...]:
    statement_id = "D-prefix.contrast" if plain == "prefixes" else "D-Fig2.13.contrast"
    return (
        Claim(
            f"contrast-restores-balance-{name}",
            f"On {plain}, {what} lowers the balance violation (ratio).",
            minimal(contrast, "balance") / minimal(plain, "balance") < 1,
            source,
            "lower",
            statement_id=f"thesis:{statement_id}",
            setting=_UPDATES,
        ),
        Claim(
            f"contrast-generalises-{name}",
            f"Networks trained on {plain} close more brackets rightly at lengths 400 to 500 with {what}.",
            minimal(contrast, "outside") - minimal(plain, "outside") > 0,
            source,
            "higher",
            statement_id=f"thesis:{statement_id}",
            setting=_UPDATES,
        ),
    )


PUBLISHED = (
    Claim(
        "minimal-networks-close-rightly",
        "Networks with a minimal first layer (2.55) close more than 97 % of brackets rightly at the trained length.",
        closed("words") > 0.97,
        _VARIATION,
        ">= 97 %",
        statement_id="thesis:D-train",
        setting=_UPDATES,
    ),
    Claim(
        "standard-networks-close-rightly",
        "So do networks of two layers that read tokens, without positions.",
        standard_closed("standard") > 0.97,
        f"{_VARIATION}, footnote 18",
        ">= 97 %",
        statement_id="thesis:D-train",
        setting=_STANDARD,
    ),
    Claim(
        "uniform-networks-close-rightly",
        "Networks of two layers whose attention is uniform close more than 99 % rightly.",
        standard_closed("standard, uniform") > 0.99,
        "Footnote 11",
        "> 99 %",
        statement_id="thesis:D-C2.2.1.footnote",
        setting=_STANDARD,
    ),
    Claim(
        "seeds-differ-as-random-attention",
        "The second layers of two seeds differ by more than 0.7 of what random causal attention does (no positions).",
        standard_variation("standard", 2) > 0.7,
        _VARIATION,
        "0.80 times: 2.27 of 2.85, close to the random baseline",
        grade=True,
        statement_id="thesis:D-variation",
        setting=f"{_STANDARD} {_PREFIX}",
    ),
    Claim(
        "seeds-differ-with-positions",
        "So they do with linear positions.",
        standard_variation("standard, linear", 2) > 0.7,
        _VARIATION,
        "0.77 times: 2.20 of 2.85, close to the random baseline",
        grade=True,
        statement_id="thesis:D-variation",
        setting=f"{_STANDARD} {_PREFIX}",
    ),
    *(
        Claim(
            f"seeds-differ-close-to-random-attention{suffix}",
            f"The second layers of two seeds differ by as much as random causal attention does, within a half of it "
            f"({positions}).",
            standard_variation(arm, 2).near(1, margin=0.5),
            _VARIATION,
            printed,
            grade=True,
            statement_id="thesis:D-variation",
            setting=f"{_STANDARD} {_PREFIX}",
        )
        for suffix, positions, arm, printed in (
            ("", "no positions", "standard", "0.80 times: 2.27 of 2.85, close to the random baseline"),
            (
                "-with-positions",
                "linear positions",
                "standard, linear",
                "0.77 times: 2.20 of 2.85, close to the random baseline",
            ),
        )
    ),
    Claim(
        "minimal-seeds-agree-more",
        "With a minimal first layer two seeds differ by less than 0.2 of it.",
        variation("words") < 0.2,
        _VARIATION,
        "0.084 times: 0.24 of 2.85",
        grade=True,
        statement_id="thesis:D-variation.minimal",
        setting=f"{_UPDATES} {_PREFIX}",
    ),
    Claim(
        "first-layers-agree",
        "First layers of two seeds differ by less than 0.1 of it, mean over the eight settings of Table 2.6.",
        table_variation(1) < 0.1,
        _TABLE,
        "0.014 to 0.068 times: 0.047 to 0.225 of 3.33",
        grade=True,
        statement_id="thesis:D-Tab2.6",
        setting=_GRID,
        preconditions=(_LEARNED,),
    ),
    Claim(
        "second-layers-differ-more-than-random",
        "Second layers differ by more than random causal attention, mean over the settings.",
        table_variation(2) > 1,
        _TABLE,
        "1.5 to 2.8 times: 5.072 to 9.313 of 3.33",
        grade=True,
        statement_id="thesis:D-Tab2.6",
        setting=_GRID,
        preconditions=(_LEARNED,),
    ),
    Claim(
        "third-layers-differ-more-than-second",
        "Third layers differ by more than second layers do, mean over the settings of three layers.",
        table_variation(3, 3) - table_variation(2, 3) > 0,
        _TABLE,
        "by 5.2 to 5.8 times: 24.063 and 5.072 of 3.33, for one of four",
        statement_id="thesis:D-Tab2.6",
        setting=_GRID,
        preconditions=(_LEARNED,),
    ),
    Claim(
        "balance-goes-with-generalising",
        "The further from balance, the more errors at lengths 400 to 500 (Spearman's correlation, trained on words).",
        rank_correlation("words") > 0,
        _BALANCE,
        "negatively correlated with accuracy",
        statement_id="thesis:D-Fig2.13",
        setting=f"{_UPDATES} Accuracy is the text's; `dyck-balance` has the released program's too, and more networks.",
    ),
    Claim(
        "balance-says-less-of-prefixes",
        "That correlation is lower among networks that are trained on prefixes.",
        rank_correlation("words") - rank_correlation("prefixes") > 0,
        "Figure 2.17",
        "not presented as in the case of Dyck sequences",
        statement_id="thesis:D-prefix",
        setting=_UPDATES,
    ),
    *_regularised("words", "words", "words, contrast", "the contrastive regulariser (2.58)", _BALANCE),
    *_regularised(
        "released", "words", "words, released contrast", "the regulariser of the released program", _BALANCE
    ),
    *_regularised("prefixes", "prefixes", "prefixes, contrast", "the contrastive regulariser", _PREFIXES),
)


def _ours(identity: str, statement: str, criterion: Criterion, source: str) -> Claim:
    return Claim(identity, statement, criterion, source, NOT_PRINTED, "ours")


OURS = (
    _ours(
        "attention-is-not-that-of-a-stack",
        "Fewer than four in five closing brackets, (2.55), attend most to the innermost one that is open.",
        minimal("words", "stack_1") < 0.8,
        "Figures 2.12 and 2.14",
    ),
    _ours(
        "the-second-layer-is-no-stack",
        "Nor do they in the second layer of standard networks.",
        standard("standard", "stack_2") < 0.8,
        "Figure 2.11",
    ),
    _ours(
        "what-is-attended-to-matters",
        "Uniform attention in place of what a minimal network has learned costs more than 0.1 of its accuracy.",
        minimal("words", "inside") - minimal("words", "uniform") > 0.1,
        _VARIATION,
    ),
    _ours(
        "contrast-halves-the-violation",
        "On words the regulariser lowers the violation to less than half.",
        minimal("words, contrast", "balance") / minimal("words", "balance") < 0.5,
        _BALANCE,
    ),
    _ours(
        "weight-decay-restores-balance",
        "On words, weight decay (2.41) with lambda = 0.001 lowers the violation (ratio).",
        minimal("words, decay", "balance") / minimal("words", "balance") < 1,
        "Corollary 2.2.2",
    ),
    _ours(
        "the-inequalities-hold-on-what-was-trained",
        "No case of Theorem 2.2.2's inequalities, constants corrected, fails on a trained network.",
        inequalities_failed() < 0.5,
        "Theorem 2.2.2",
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

NUMBERS = {
    "minimal, inside": minimal("words", "inside"),
    "minimal, outside": minimal("words", "outside"),
    "minimal with contrast, outside": minimal("words, contrast", "outside"),
    "minimal, violation": minimal("words", "balance"),
    "minimal with contrast, violation": minimal("words, contrast", "balance"),
    "minimal with the released contrast, outside": minimal("words, released contrast", "outside"),
    "minimal with the released contrast, violation": minimal("words, released contrast", "balance"),
    "minimal with weight decay, violation": minimal("words, decay", "balance"),
    "minimal with weight decay, outside": minimal("words, decay", "outside"),
    "log of the decay of Corollary 2.2.2": minimal("words", "log_decay"),
    "violation and error, words": rank_correlation("words"),
    "violation and error, prefixes": rank_correlation("prefixes"),
    "minimal, stack": minimal("words", "stack_1"),
    "minimal, ablated": minimal("words", "uniform"),
    "standard, inside": standard("standard", "inside"),
    "standard, stack": standard("standard", "stack_2"),
    "variation of minimal networks": variation("words"),
    "variation of second layers": standard_variation("standard", 2),
    **{f"Table 2.6, layer {layer}": table_variation(layer, max(2, layer)) for layer in (1, 2, 3)},
    **{f"Table 2.6, right, {setting}": setting_closed(setting) for setting in SETTINGS},
    "Table 2.6, smallest share of learned networks": learned_share(),
    "trained networks with a positive side": positive_share(),
}
