"""Claims of the study, and the numbers for documents."""

from trialogue_lab.ledger import Claim, cited, ours, smallest
from trialogue_lab.studies.ising_masking import statistics as stats

PUBLISHED = {0.05: "Figure 4.1", 0.3: "Figure 4.2"}
"""Figures of the thesis by coupling"""

_PUBLISHED_TREND = "larger k, lower error"
_AVERAGE = "the logarithms of ratios are averaged, so that the estimate is a geometric mean"


def _make_figure_claims(coupling: float, figure: str) -> tuple[Claim, ...]:
    """Return the claims about the published figure for Ising models with coupling J = `coupling`."""
    ending = f"j{coupling:g}".replace(".", "")
    statement_id = f"thesis:M-F41.{figure.lower().replace(' ', '-')}"
    return (
        *(
            Claim(
                f"masking-{fewer + 1}-beats-{fewer}-{ending}",
                f"At J = {coupling:g} masking {fewer + 1} sites errs less than masking {fewer} (n times the squared "
                f"error, mean over n >= {stats.LARGE}).",
                stats.gain(coupling, fewer) > 0,
                **cited(figure, _PUBLISHED_TREND, statement_id),
            )
            for fewer in (1, 2, 3)
        ),
        Claim(
            f"at-every-size-{ending}",
            f"At J = {coupling:g} masking 4 sites errs less than masking 1 at every size of the training set "
            "(smallest difference of n times the squared error).",
            stats.smallest_gain(coupling) > 0,
            **cited(figure, _PUBLISHED_TREND, statement_id),
        ),
        *(
            Claim(
                f"as-predicted-{size}-{ending}",
                f"At J = {coupling:g} the squared error of masking {size} is Tr Gamma / n within 25 % (ratio, mean "
                f"over n >= {stats.LARGE}).",
                stats.error_over_limit(coupling, size).corrected(_AVERAGE).as_ratio().near(1, margin=0.25),
                **cited(f"Lemma 4.1.1, {figure}", "asymptotically 1", "thesis:M-L411", grade=True),
            )
            for size in (1, 2, 3, 4)
        ),
        ours(
            f"all-masks-no-gap-{ending}",
            f"At J = {coupling:g}, with all masks of every sample scored, masking 1 site errs as much as masking 4 "
            "(difference within a tenth of Tr Gamma).",
            stats.gain_of_all_masks(coupling).near(0, margin=0.1),
            f"{figure} (control not in the thesis)",
        ),
        Claim(
            f"error-within-trace-{ending}",
            f"At J = {coupling:g} the squared error is at most Tr Gamma / n with probability at least 0.99 (share of "
            "the training sets, mean over k).",
            stats.within_trace(coupling) > 0.99,
            "Remark on Lemma 4.1.1",
            "at least 0.99, by Markov's inequality, which gives 100 Tr Gamma / n",
            statement_id="thesis:M-L411.remark",
        ),
    )


CLAIMS = (
    *(claim for coupling, figure in PUBLISHED.items() for claim in _make_figure_claims(coupling, figure)),
    ours(
        "masking-more-is-no-worse",
        "In the models of both figures the asymptotic covariance of masking k sites minus that of masking k + 1 has no "
        "eigenvalue below -1e-10.",
        smallest("theorem", "smallest_eigenvalue") > -1e-10,
        "Theorem 4.1.1 (counted as published in mixing-and-learning)",
        "not below 0",
    ),
    ours(
        "strictly-better",
        "Masking more strictly improves: masking 4 instead of 3 of the 4 sites lowers the asymptotic variance of the "
        "couplings (Tr, more than 1e-9).",
        stats.last_gain_of_couplings() > 1e-9,
        "Text before Theorem 4.1.1 (counted as published in mixing-and-learning)",
        "strictly improves",
    ),
    ours(
        "poincare-bounds-the-trace",
        "In the models of both figures Tr Gamma of masking k sites is at most C Tr of the inverse Fisher information, "
        "C the Poincaré constant of k-Gibbs (smallest slack, share of the bound).",
        stats.slack_of_poincare() > -1e-10,
        "Theorem 4.1.2 (of which it is a consequence)",
        "not below 0",
    ),
    ours(
        "masking-more-is-better-with-ordered-pairs",
        "With the pairs of eq. (4.6) read as ordered, which doubles J, Tr Gamma falls with every further masked site "
        "in both figures too (largest log ratio of Tr Gamma at k + 1 and k).",
        stats.largest_step_of_limit("ordered") < 0,
        "Figures 4.1 and 4.2, eq. (4.6)",
        _PUBLISHED_TREND,
    ),
)

NUMBERS = {
    f"{name}, J = {coupling:g}, k = {size}": quantity(coupling, size)
    for coupling in PUBLISHED
    for size in (1, 2, 3, 4)
    for name, quantity in (("n times the squared error", stats.scaled_error), ("limit", stats.limit))
}
