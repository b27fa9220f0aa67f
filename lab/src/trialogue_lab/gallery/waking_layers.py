"""Scene 4: the layers of a factored network set out one after another, from the rows of `interaction-order`."""

from pathlib import Path
from typing import Any

from pandas import DataFrame

from trialogue.errors import InputError
from trialogue_lab.ledger.entries import counting_result
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.runs.results import search_folders
from trialogue_lab.studies.interaction_order import STUDY

DEPTHS = (1, 2, 3)


def scene(results: str | Path | None) -> dict[str, Any]:
    """What the study's result below `results` says of every law: bounds, losses of its networks, and layers' moves.

    `laws` are in the order of their seeds; `first` is the place of the law to show first (see `_shown_first`). Curves
    have the losses of networks of one, two and three layers at `steps`; `moved` the mean square displacement of each
    of three layers, first to last, and `onsets` the steps at which they set out. Counts are over all laws. Raises
    `InputError` where there is no finished result of the study.
    """
    result = counting_result(STUDY, results)
    if result is None:
        hint = f"it has no finished result of {STUDY.name}: run `trialogue run {STUDY.name}`, or name another folder"
        raise InputError("results", ", ".join(map(str, search_folders(results))), hint)
    rows = STUDY.rows(result)
    bounds = rows["law"].sort_values("seed")
    laws = [_law(rows, int(seed)) for seed in bounds.seed]
    onsets = [law["onsets"] for law in laws]
    return {
        "result": f"{STUDY.name}@{result.hash}",
        "laws": laws,
        "first": _shown_first(bounds, onsets),
        "last_first": sum(last < min(first, middle) for first, middle, last in onsets),
        "middle_second": sum(middle < first for first, middle, _ in onsets),
    }


def _shown_first(bounds: DataFrame, onsets: list[list[int]]) -> int:
    """Of the laws whose layers set out in the commonest order, the place of that whose smaller step is the highest."""
    orders = [tuple(sorted(range(len(each)), key=each.__getitem__)) for each in onsets]
    common = max(set(orders), key=orders.count)
    smaller = (bounds.two - bounds.three).combine(bounds.three - bounds.four, min).tolist()
    return max((place for place, order in enumerate(orders) if order == common), key=smaller.__getitem__)


def _law(rows: Rows, seed: int) -> dict[str, Any]:
    """One law and its networks."""
    law = rows.where("law", seed=seed).iloc[0]
    curves = [rows.where("curve", seed=seed, layers=depth).sort_values("step") for depth in DEPTHS]
    three, training = curves[-1], rows.where("training", seed=seed, layers=DEPTHS[-1]).iloc[0]
    return {
        "seed": seed,
        "bounds": [float(law[form]) for form in ("two", "three", "four")],
        "curves": [
            {"steps": curve.step.astype(int).tolist(), "losses": curve.loss.tolist()} for curve in curves
        ],
        "moved": [three[f"moved_{layer}"].tolist() for layer in DEPTHS],
        "onsets": [int(training[f"onset_{layer}"]) for layer in DEPTHS],
    }
