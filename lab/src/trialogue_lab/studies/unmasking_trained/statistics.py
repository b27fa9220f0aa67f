"""Shares of solved puzzles, with one number per training."""

from typing import Literal

from trialogue_lab.ledger import Counts, Replication, Rows
from trialogue_lab.studies.unmasking_trained.config import Task

trainings = Replication("training", "seeds")
Stage = Literal["early", "late", "mean"]


@trainings
def solved(
    rows: Rows,
    task: Task,
    order: str,
    stage: Stage = "late",
    size: int = 1,
    temperature: float = 0.0,
    puzzles: str = "held out",
) -> Counts:
    """Count the puzzles that a network completes without an error.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        task: "sudoku" or "addition".
        order: Order of the tokens, for example "confidence".
        stage: "early" for the first tested training step, "late" (default) for the last one, or "mean" for all.
        size: Number of tokens per pass (default: 1).
        temperature: 0 for the most probable tokens (default), or 1 for random ones.
        puzzles: "held out" (default), or "seen" for puzzles of training sequences, which are tested late.

    Returns:
        Numbers of solved and of tested puzzles, per training seed.
    """
    table = rows.require(
        "solved", task=task, order=order, size=size, temperature=temperature, puzzles=puzzles
    )
    steps = rows.config[f"{task}_steps"]
    if stage != "mean":
        table = table[table.step == steps[0 if stage == "early" else -1]]
    found = table.groupby("seed")
    return Counts(found.solved.sum(), found.tests.sum())
