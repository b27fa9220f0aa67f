"""Scene 5 of the gallery: the training steps at which the layers of an attention network begin to learn.

The numbers are measurements of the study `interaction-order`.
"""

from pathlib import Path
from typing import Any

from pandas import DataFrame

from trialogue.errors import InputError
from trialogue_lab.ledger.entries import counting_result
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.runs.results import search_folders
from trialogue_lab.studies.interaction_order import STUDY

DEPTHS = (1, 2, 3)
SHOWN = 24
"""Largest number of trainings that the page contains."""


def make_scene(results: str | Path | None) -> dict[str, Any]:
    """Return the trainings in the result of the study `interaction-order`, as JSON values for the gallery.

    Args:
        results: Folder of study results. None for the default folders.

    Returns:
        Dictionary with one entry in "trainings" for each of the first `SHOWN` seeds. It has lower bounds on the loss
        ("bounds"), loss curves of networks with one, two and three layers ("curves"), the mean squared change of the
        weights of each of three layers by step ("moved"), and the steps at which these layers begin to learn
        ("onsets"). "first" is the index of the training to show first. "last_first" and "middle_second" count
        trainings among all "count" trainings.

    Raises:
        InputError: If the study has no finished result.
    """
    result = counting_result(STUDY, results)
    if result is None:
        hint = (
            f"no finished result of {STUDY.name}: use `trialogue run {STUDY.name}`, or choose another folder"
        )
        raise InputError("results", ", ".join(map(str, search_folders(results))), hint)
    rows = STUDY.rows(result)
    bounds = rows["law"].sort_values("seed")
    trainings = [_extract_training(rows, int(seed)) for seed in bounds.seed]
    onsets = [training["onsets"] for training in trainings]
    return {
        "result": f"{STUDY.name}@{result.hash}",
        "trainings": trainings[:SHOWN],
        "first": _choose_first_training(bounds[:SHOWN], onsets[:SHOWN]),
        "count": len(trainings),
        "last_first": sum(last < min(first, middle) for first, middle, last in onsets),
        "middle_second": sum(middle < first for first, middle, _ in onsets),
    }


def _choose_first_training(bounds: DataFrame, onsets: list[list[int]]) -> int:
    """Return the index of the training with the most distinct steps between its loss bounds.

    Only trainings whose layers begin to learn in the most common order are considered.
    """
    orders = [tuple(sorted(range(len(each)), key=each.__getitem__)) for each in onsets]
    common = max(set(orders), key=orders.count)
    smaller = (bounds.two - bounds.three).combine(bounds.three - bounds.four, min).tolist()
    return max((index for index, order in enumerate(orders) if order == common), key=smaller.__getitem__)


def _extract_training(rows: Rows, seed: int) -> dict[str, Any]:
    bounds = rows.where("law", seed=seed).iloc[0]
    curves = [rows.where("curve", seed=seed, layers=depth).sort_values("step") for depth in DEPTHS]
    three, training = curves[-1], rows.where("training", seed=seed, layers=DEPTHS[-1]).iloc[0]
    return {
        "seed": seed,
        "bounds": [float(bounds[form]) for form in ("two", "three", "four")],
        "curves": [
            {"steps": curve.step.astype(int).tolist(), "losses": curve.loss.tolist()} for curve in curves
        ],
        "moved": [three[f"moved_{layer}"].tolist() for layer in DEPTHS],
        "onsets": [int(training[f"onset_{layer}"]) for layer in DEPTHS],
    }
