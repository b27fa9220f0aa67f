"""Claims of the study, and the numbers for documents."""

import math
from functools import partial

from trialogue_lab.ledger import Claim, cited, largest, ours, smallest
from trialogue_lab.studies.ising_sampling import statistics as stats
from trialogue_lab.studies.ising_sampling.config import PARALLEL, PRESETS, block_label

_FIGURE = "Thesis section 4.2.1.2, Figure 4.3"
_COUPLINGS = PRESETS["default"].couplings
_COUPLING_LIST = ", ".join(f"{coupling:g}" for coupling in _COUPLINGS)
_OF_PARALLEL = f"chain == {PARALLEL!r}"
_GEOMETRIC_MEAN = "the logarithms of ratios are averaged, so that the estimate is a geometric mean"
_LARGER_K, _LARGER_J = "larger k is faster", "larger J is slower"
_COUPLINGS_NOT_PRINTED = "The source does not print its couplings."
_figure = partial(Claim, source=_FIGURE, statement_id="thesis:M-F43.blocks", setting=_COUPLINGS_NOT_PRINTED)
_control = partial(ours, source=f"{_FIGURE} (control not in the thesis)")
_COUPLINGS_TRIED = (
    "The source does not print its couplings. The weak ones tried here, J = 1, 2 and 3, may not be among them. For J "
    "of at least 5, the sampler does not arrive."
)
_NEVER = "never within 1000 steps, for any J tried; the J are not printed"

CLAIMS = (
    *(
        _figure(
            f"blocks-of-{more}-beat-{fewer}",
            f"k-Gibbs takes fewer steps with k = {more} than with k = {fewer}, at most 1000 counted (log ratio, mean "
            "over couplings).",
            stats.log_steps_ratio(block_label(fewer), block_label(more)) > 0,
            published=_LARGER_K,
        )
        for fewer, more in ((1, 4), (4, 6), (6, 8), (8, 10))
    ),
    Claim(
        "stronger-coupling-is-slower-over-all-blocks",
        "k-Gibbs takes more steps at J = 8 than at J = 2, at most 1000 counted (log ratio, mean over all k).",
        stats.slowdown(8.0, 2.0) > 0,
        **cited(_FIGURE, _LARGER_J, "thesis:M-F43.coupling", setting=_COUPLINGS_NOT_PRINTED),
    ),
    ours(
        "stronger-coupling-is-slower",
        "k-Gibbs takes more steps at J = 8 than at J = 2, at most 1000 counted (log ratio, mean over k < N - 1).",
        stats.slowdown(8.0, 2.0, below_all=2) > 0,
        _FIGURE,
        _LARGER_J,
    ),
    _control(
        "independent-parallel-is-fast-when-weak",
        "At J = 1 and 2 independent parallel takes fewer steps than 1-Gibbs (log ratio, mean over J).",
        stats.log_steps_ratio(PARALLEL, block_label(1), most=2.0) < 0,
        published=_NEVER,
    ),
    _control(
        "steps-as-computed",
        "For k >= 4 the mean numbers of steps are the exact ones within 5 % (ratio, mean over k and J).",
        stats.steps_over_exact(4).as_ratio().corrected(_GEOMETRIC_MEAN).near(1, margin=0.05),
    ),
    _control(
        "arrivals-as-computed",
        "The shares of chains that reach R_1 within the budget are the exact ones within 0.01 (mean over all cells).",
        stats.arrivals_above_exact().near(0, margin=0.01),
    ),
    _figure(
        "larger-blocks-are-faster-exact",
        "At every J the expected number of steps falls with every k (largest increase of its logarithm).",
        stats.largest_increase_with_blocks() < 0,
        published=_LARGER_K,
    ),
    ours(
        "stronger-coupling-is-not-faster",
        "At no k and from no J to the next does the expected number of steps fall by more than 1 % (smallest increase "
        "of its logarithm).",
        stats.smallest_increase_with_coupling() > -0.01,
        f"{_FIGURE}, with a margin of this project",
        _LARGER_J,
    ),
    ours(
        "stronger-coupling-is-slower-below-all-sites",
        "At every k < N the expected number of steps grows by more than a tenth from J = 1 to J = 8 (smallest increase "
        "of its logarithm).",
        stats.smallest_slowdown(8.0, 1.0) > math.log(1.1),
        f"{_FIGURE}, without k = N, for which every step resamples all spins",
        _LARGER_J,
    ),
    _figure(
        "blocks-of-the-clique-arrive",
        "With k at least the size of the clique k-Gibbs reaches R_1 within 1000 steps with probability above 0.95, at "
        f"each of J = {_COUPLING_LIST}.",
        smallest("exact", "reached", where="block_size >= 4") > 0.95,
        published="can often reach R_1",
        statement_id="thesis:M-F43.arrival",
        grade=True,
    ),
    Claim(
        "independent-parallel-never-arrives-exact",
        "Independent parallel does not reach R_1 within 1000 steps at any J tried here, which are "
        f"{_COUPLING_LIST} (largest probability below 0.01).",
        largest("exact", "reached", where=_OF_PARALLEL) < 0.01,
        **cited(_FIGURE, _NEVER, "thesis:M-F43.parallel", grade=True, setting=_COUPLINGS_TRIED),
    ),
    ours(
        "independent-parallel-never-arrives-strong-exact",
        "At J = 5, 6 and 8 independent parallel reaches R_1 within 1000 steps with probability below 1e-4.",
        largest("exact", "reached", where=f"{_OF_PARALLEL} and coupling >= 5") < 1e-4,
        f"{_FIGURE}, for strong couplings",
        _NEVER,
    ),
    *(
        ours(
            f"independent-parallel-never-arrives-{pairs}-pairs",
            f"With the pairs of eq. (4.6) read as {pairs}, independent parallel reaches R_1 within 1000 steps with "
            "probability below 0.01 from J = 2 on (largest over J = 2, 3 and 4).",
            stats.reached_by_reading(PARALLEL, 2.0, times) < 0.01,
            f"{_FIGURE}, eq. (4.6)",
            _NEVER,
        )
        for pairs, times in (("unordered", 1), ("ordered", 2))
    ),
)

NUMBERS = {
    f"chance that independent parallel arrives, J = {j:g}": stats.exact_number(j, PARALLEL, "reached")
    for j in _COUPLINGS
}
