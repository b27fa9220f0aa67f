"""Claims of the study: Figures 2.11 to 2.18, Table 2.6, footnotes, and Theorem 2.2.2 on what was trained."""

from trialogue.ledger import NOT_PRINTED, Claim, Criterion
from trialogue.studies.dyck_attention.quantities import (
    closed,
    discordance,
    inequalities_failed,
    minimal,
    positive_share,
    standard,
    standard_closed,
    standard_variation,
    variation,
)

_VARIATION = "Section 2.2.3.2"
_BALANCE = "Figure 2.13"
_PREFIXES = "Figures 2.16 and 2.17"


def _regularised(strings: str, source: str) -> tuple[Claim, ...]:
    plain, contrast = strings, f"{strings}, contrast"
    return (
        Claim(
            f"contrast-restores-balance-{strings}",
            f"On {strings}, the contrastive regulariser lowers the balance violation (ratio).",
            minimal(contrast, "balance") / minimal(plain, "balance") < 1,
            source,
            "lower",
        ),
        Claim(
            f"contrast-generalises-{strings}",
            f"Networks trained on {strings} with it close more brackets rightly at lengths 400 to 500.",
            minimal(contrast, "outside") - minimal(plain, "outside") > 0,
            source,
            "higher",
        ),
    )


PUBLISHED = (
    Claim(
        "minimal-networks-close-rightly",
        "Networks with a minimal first layer (2.55) close more than 97 % of brackets rightly at the trained length.",
        closed("words") > 0.97,
        _VARIATION,
        ">= 97 %",
    ),
    Claim(
        "standard-networks-close-rightly",
        "So do networks of two layers that read tokens, without positions.",
        standard_closed("standard") > 0.97,
        f"{_VARIATION}, footnote 18",
        ">= 97 %",
    ),
    Claim(
        "uniform-networks-close-rightly",
        "Networks of two layers whose attention is uniform close more than 99 % rightly.",
        standard_closed("standard, uniform") > 0.99,
        "Footnote 11",
        "> 99 %",
    ),
    Claim(
        "seeds-differ-as-random-attention",
        "The second layers of two seeds differ by more than 0.7 of what random causal attention does (no positions).",
        standard_variation("standard", 2) > 0.7,
        _VARIATION,
        "2.27 of 2.85",
        grade=True,
    ),
    Claim(
        "seeds-differ-with-positions",
        "So they do with linear positions.",
        standard_variation("standard, linear", 2) > 0.7,
        _VARIATION,
        "2.20 of 2.85",
        grade=True,
    ),
    Claim(
        "minimal-seeds-agree-more",
        "With a minimal first layer two seeds differ by less than 0.2 of it.",
        variation("words") < 0.2,
        _VARIATION,
        "0.24 of 2.85",
        grade=True,
    ),
    Claim(
        "first-layers-agree",
        "First layers of standard networks differ by less than 0.1 of it.",
        standard_variation("standard", 1) < 0.1,
        "Table 2.6",
        "0.047 of 3.33",
        grade=True,
    ),
    Claim(
        "second-layers-differ-more-than-random",
        "Second layers differ by more than random causal attention.",
        standard_variation("standard", 2) > 1,
        "Table 2.6",
        "7.721 of 3.33",
        grade=True,
    ),
    Claim(
        "balance-goes-with-generalising",
        "Of two seeds the one nearer to balance closes more brackets rightly at lengths 400 to 500 (share of pairs).",
        discordance("words") > 0.5,
        _BALANCE,
        "negatively correlated",
    ),
    *_regularised("words", _BALANCE),
    *_regularised("prefixes", _PREFIXES),
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
    "minimal, stack": minimal("words", "stack_1"),
    "minimal, ablated": minimal("words", "uniform"),
    "standard, inside": standard("standard", "inside"),
    "standard, stack": standard("standard", "stack_2"),
    "variation of minimal networks": variation("words"),
    "variation of second layers": standard_variation("standard", 2),
    "trained networks with a positive side": positive_share(),
}
