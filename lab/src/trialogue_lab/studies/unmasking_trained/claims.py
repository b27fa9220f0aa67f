"""Claims of the study, and the numbers that documentation pages quote."""

from functools import partial

from trialogue_lab.ledger import Claim, Precondition, Statistic, cited, ours
from trialogue_lab.studies.unmasking_trained.config import ADDITION, SUDOKU, Task
from trialogue_lab.studies.unmasking_trained.measure import ORDERS
from trialogue_lab.studies.unmasking_trained.statistics import Stage, solved

_ABSTRACT = "Kim, Shah, Kontonis, Kakade and Chen (arXiv 2502.06768), abstract"
_QUOTED = "Kim, Shah, Kontonis, Kakade and Chen (arXiv 2502.06768), quoted in a public review"
_SETTING = (
    "Sudoku with 4 x 4 cells and five given ones, networks of 58,000 parameters and 400 training steps, temperature 0. "
    "The source has 9 x 9 cells."
)
_BOOST = "adaptive inference can boost solving accuracy in pretrained MDMs from < 7 % to about 90 %"


def _learned(task: Task) -> tuple[Precondition, ...]:
    return (
        Precondition(
            f"the networks have learned the task ({task}): after training, more than half of the held-out tests are "
            "solved in the order by confidence (mean over trainings)",
            solved(task, "confidence") > 0.5,
        ),
    )


def gain(task: Task, stage: Stage = "late", temperature: float = 0.0) -> Statistic:
    """Return the share solved in the order by confidence minus the share solved in random order.

    Args:
        task: "sudoku" or "addition".
        stage: "early", "late" (default) or "mean", as in `solved`.
        temperature: 0 (default) or 1.
    """
    shares = (solved(task, order, stage, 1, temperature) for order in ("confidence", "random"))
    return next(shares) - next(shares)


_sudoku = partial(cited, setting=_SETTING, preconditions=_learned(SUDOKU))
_ours = partial(ours, source="not in the source", preconditions=_learned(SUDOKU))
_added = partial(ours, source="not in the source", preconditions=_learned(ADDITION))

CLAIMS = (
    Claim(
        "confidence-beats-random",
        "After training, more Sudoku puzzles are solved in the order by confidence (top probability) than in random "
        "order, with one cell per pass (difference of shares).",
        gain(SUDOKU) > 0,
        **_sudoku(_ABSTRACT, _BOOST, "token-ordering:M-abstract.sudoku"),
    ),
    Claim(
        "margin-beats-random",
        "After training, more Sudoku puzzles are solved in the order by margin (difference of the two top "
        "probabilities) than in random order, with one cell per pass (difference of shares).",
        solved(SUDOKU, "margin") - solved(SUDOKU, "random") > 0,
        **_sudoku(_ABSTRACT, _BOOST, "token-ordering:M-abstract.sudoku"),
    ),
    Claim(
        "margin-beats-confidence",
        "More Sudoku puzzles are solved in the order by margin than in the order by confidence, with one cell per pass "
        "(difference of shares, mean over tested training steps).",
        solved(SUDOKU, "margin", "mean") - solved(SUDOKU, "confidence", "mean") > 0,
        **_sudoku(
            _QUOTED,
            "When multiple values have similar probabilities at a position, Top-K probability margin will provide a "
            "better estimate of the uncertainty of a position",
            "token-ordering:M-margin",
        ),
    ),
    Claim(
        "confidence-loses-on-sums",
        "Fewer sums are right in the order by confidence than in random order, with one digit per pass (difference of "
        "shares, mean over tested training steps).",
        gain(ADDITION, "mean") < 0,
        **cited(
            "Kim and No (arXiv 2605.29123), abstract",
            "multi-digit addition, where the decoding strategy prematurely predicts locally easy digits before "
            "resolving their long-range dependencies, producing high-confidence errors on challenging inputs",
            "confidence-shortcut:M-abstract.addition",
            setting="Sums of two numbers of two digits, networks of 58,000 parameters and 1,200 training steps, "
            "temperature 0. The source names no size in its abstract, and finds the errors on hard inputs.",
            preconditions=_learned(ADDITION),
        ),
    ),
    _ours(
        "confidence-beats-random-early",
        "After a quarter of the training, too, more Sudoku puzzles are solved in the order by confidence than in "
        "random order (difference of shares).",
        gain(SUDOKU, "early") > 0,
    ),
    _ours(
        "gain-grows-in-training",
        "The difference between the order by confidence and random order is larger after the training than after a "
        "quarter of it (Sudoku, difference of the gains).",
        gain(SUDOKU, "late") - gain(SUDOKU, "early") > 0,
    ),
    _ours(
        "gain-is-larger-at-temperature-one",
        "After training, the difference between the order by confidence and random order is larger at temperature 1 "
        "than at temperature 0 (Sudoku, difference of the gains).",
        gain(SUDOKU, temperature=1.0) - gain(SUDOKU) > 0,
    ),
    _ours(
        "two-confident-cells-beat-one-random-cell",
        "After training, two cells per pass in the order by confidence solve more Sudoku puzzles than one cell per "
        "pass in random order (difference of shares).",
        solved(SUDOKU, "confidence", size=2) - solved(SUDOKU, "random") > 0,
    ),
    _ours(
        "four-cells-per-pass-cost",
        "After training, one cell per pass by confidence solves more Sudoku puzzles than four cells per pass, by more "
        "than 0.1 (difference of shares).",
        solved(SUDOKU, "confidence") - solved(SUDOKU, "confidence", size=4) > 0.1,
    ),
    _ours(
        "left-to-right-beats-random",
        "After training, more Sudoku puzzles are solved from left to right than in random order (difference of "
        "shares).",
        solved(SUDOKU, "left to right") - solved(SUDOKU, "random") > 0,
    ),
    _ours(
        "entropy-and-confidence-are-alike",
        "The orders by entropy and by confidence solve equally many Sudoku puzzles, within 0.02 (difference of shares, "
        "mean over tested training steps).",
        (solved(SUDOKU, "entropy", "mean") - solved(SUDOKU, "confidence", "mean")).near(0, margin=0.02),
    ),
    _added(
        "confidence-adds-from-left-to-right",
        "The order by confidence and the order from left to right, which begins with the digit that depends on all "
        "carries, give equally many right sums, within 0.02 (difference of shares, mean over tested training steps).",
        (solved(ADDITION, "confidence", "mean") - solved(ADDITION, "left to right", "mean")).near(
            0, margin=0.02
        ),
    ),
    _added(
        "one-pass-suffices-for-sums",
        "After training, a single pass gives as many right sums as one digit per pass by confidence, within 0.05 "
        "(difference of shares).",
        (solved(ADDITION, "confidence", size=4) - solved(ADDITION, "confidence")).near(0, margin=0.05),
    ),
)

NUMBERS = {
    **{
        f"{task}, {order}, {stage}": solved(task, order, stage)
        for task in (SUDOKU, ADDITION)
        for order in ORDERS
        for stage in ("early", "late", "mean")
    },
    **{
        f"{task}, {order}, {size} per pass, temperature {temperature:g}": solved(
            task, order, "late", size, temperature
        )
        for task in (SUDOKU, ADDITION)
        for order in ORDERS
        for size, temperature in ((2, 0.0), (4, 0.0), (1, 1.0))
    },
}
