"""Claims of the study, and the numbers that documentation pages quote."""

from functools import partial

from trialogue_lab.ledger import Claim, Precondition, Statistic, cited, ours
from trialogue_lab.studies.unmasking_trained.config import ADDITION, SUDOKU, Task
from trialogue_lab.studies.unmasking_trained.measure import ORDERS
from trialogue_lab.studies.unmasking_trained.statistics import Stage, solved

_ABSTRACT = "Kim et al. (arXiv 2502.06768), abstract"
_QUOTED = "Kim et al. (arXiv 2502.06768), quoted in a public review"
_SETTING = (
    "Sudoku with 4 x 4 cells and five given ones, networks of 86,000 parameters and 400 training steps, temperature 0. "
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
    _ours(
        "confidence-beats-random-early",
        "After a quarter of the training, too, more Sudoku puzzles are solved in the order by confidence than in "
        "random order (difference of shares).",
        gain(SUDOKU, "early") > 0,
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
