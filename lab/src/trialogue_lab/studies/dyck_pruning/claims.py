"""Claims of the study: Theorem 2.2.3, Corollary 2.2.3 and their lemmas, at small size."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, largest, ours
from trialogue_lab.studies.dyck_pruning import statistics as stats

_LEMMA, _THEOREM, _COROLLARY = "Lemma 2.2.2", "Theorem 2.2.3", "Corollary 2.2.3"
_SMALL = (
    "Targets have width 2 or 4, with 5 to 32 random weights per weight of the target. The statement of the source is "
    "about widths that grow without bound."
)
_small = partial(cited, setting=_SMALL)
_two_targets = partial(ours, source=_COROLLARY)
_CITED = _small(_COROLLARY, "for any eps, with probability 1 - delta", "thesis:D-T2.2.3.C2.2.3", grade=True)
_TRANSFORMERS = (("transformer", 1, (96, 192, 256)), ("transformer of two layers", 2, (256,)))

CLAIMS = (
    Claim(
        "error-falls-with-width",
        "The error of networks pruned to 4 x 4 matrices falls with the units for each weight (decades a unit).",
        stats.matrices_fall(4) < 0,
        **_small(f"{_LEMMA}, {_THEOREM}", "width O(log(1 / eps))", "thesis:D-T2.2.3.L2.2.2"),
    ),
    Claim(
        "error-falls-exponentially",
        "Logarithms of errors are on a line (R^2, 4 x 4 matrices).",
        stats.straightness(4) > 0.9,
        **_small(f"{_LEMMA}, {_THEOREM}", "width O(log(1 / eps))", "thesis:D-T2.2.3.L2.2.2", grade=True),
    ),
    Claim(
        "scores-are-pruned-too",
        "So does that of keys and queries pruned to scores (decades a product).",
        stats.falls("scores") < 0,
        **_small("Lemma 2.2.7", "width O(m log(1 / eps))", "thesis:D-T2.2.3.L2.2.7"),
    ),
    Claim(
        "four-layers-are-pruned-to-two",
        "And that of four layers pruned to two (decades a unit).",
        stats.falls("layers") < 0,
        **_small("Lemma 2.2.6", "width O(log(1 / eps))", "thesis:D-T2.2.3.L2.2.6"),
    ),
    Claim(
        "two-targets-share-a-larger-matrix",
        "With 20 units a weight, networks pruned to two 4 x 4 targets, whose first matrices are the same after "
        "pruning, are within 0.1 of either (largest error over draws).",
        largest("matrix", "error", "other_error", where="size == 4 and units == 20") < 0.1,
        **_CITED,
    ),
    Claim(
        "whole-transformers-are-pruned",
        "The error of random transformers of four layers that are pruned to a given one of one layer falls with the "
        "width of their networks (decades a unit).",
        stats.transformers_fall(1) < 0,
        **_small(_THEOREM, "width O(log(1 / eps))", "thesis:D-T2.2.3"),
    ),
    Claim(
        "deeper-transformers-are-pruned",
        "So does that of eight layers pruned to two.",
        stats.transformers_fall(2) < 0,
        **_small(_THEOREM, "width O(log(1 / eps))", "thesis:D-T2.2.3"),
    ),
    Claim(
        "two-transformers-share-any-matrix",
        "With networks of width 192, four layers are pruned to either of two transformers within 0.1 such that any "
        "matrix one likes is the same in both, in more than half of the draws.",
        stats.both_transformers_within(1, 192, 0.1) > 0.5,
        **_CITED,
    ),
    ours(
        "errors-are-bounded",
        "On no input tried is a pruned matrix further off than its error times the input's length, but for rounding "
        "(difference, inputs of length 1).",
        largest("matrix", "measured - error") < 1e-12,
        _LEMMA,
    ),
    ours(
        "compositions-are-bounded",
        "Nor are two layers, by Lemma 2.2.5 as corrected.",
        largest("layers", "measured / error") < 1 + 1e-9,
        "Lemma 2.2.5",
    ),
    _two_targets(
        "first-matrices-agree",
        "Networks pruned to two targets have the same first matrix (draws and sizes in which they do not).",
        stats.different_first() < 0.5,
    ),
    ours(
        "pruning-changes-no-weight",
        "Weights of pruned transformers are those of the random ones or zero (weights that are not).",
        largest("transformer", "changed") < 0.5,
        "Definition 2.2.4",
    ),
    _two_targets(
        "shared-layers-agree",
        "Layers that two pruned transformers do not need are the same in both (draws and sizes in which not).",
        stats.different_shared_layers() < 0.5,
    ),
    _two_targets(
        "two-transformers-share-any-matrix-at-256",
        "With networks of width 256 they are within 0.1 in more than half of the draws.",
        stats.both_transformers_within(1, 256, 0.1) > 0.5,
    ),
    _two_targets(
        "two-targets-share-a-matrix",
        "With 20 units a weight, networks pruned to two 2 x 2 targets, whose first matrices are the same after "
        "pruning, are within 0.1 of either in more than half of the draws.",
        stats.both_within(2, 20, 0.1) > 0.5,
    ),
    ours(
        "a-product-gains-a-quarter-decade",
        "Each product more that a number may be made of gains more than a quarter of a decade.",
        stats.numbers_fall() < -0.25,
        _LEMMA,
    ),
)

NUMBERS = {
    "number, 8 products": stats.error("number", count=8),
    "number, 24 products": stats.error("number", count=24),
    "matrix, 5 units": stats.error("matrix", size=4, units=5),
    "matrix, 20 units": stats.error("matrix", size=4, units=20),
    "decades a product": stats.numbers_fall(),
    **{
        f"{name}, width {width}": stats.error("transformer", layers=layers, hidden=width, first=0)
        for name, layers, widths in _TRANSFORMERS
        for width in widths
    },
}
