"""Losses of models on clones, checkpoint by checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
from annotated_types import Interval

from trialogue.data.clones import Clones
from trialogue.errors import InputError
from trialogue.inspection.interaction_order.askers import CloneLoss, asker_of
from trialogue.models.hub.catalogue import CATALOGUE
from trialogue.validation import Count, Natural, validated


class Found(NamedTuple):
    """A checkpoint: where it is, and after how many steps of a training it was written, where that is known."""

    place: str
    step: int | None


def checkpoints_of(model: str | Path) -> list[Found]:
    """The checkpoints that `model` names, by step: it itself, or those in a folder that a training left them in.

    These are the networks of `trialogue.training.Checkpoints`, in the folder or in `checkpoints` in it, or the folders
    `checkpoint-N` that the trainer of transformers leaves. Raises `InputError` for a folder that holds none of this.
    """
    place = Path(model)
    # A short name is that of a model also where a folder is called so: the one of its results perhaps.
    if str(model) in CATALOGUE:
        return [Found(str(model), None)]
    if not place.is_dir() or (place / "config.json").exists() or (place / "adapter_config.json").exists():
        named = re.fullmatch(r"step-(\d+)\.safetensors", place.name)
        return [Found(str(model), int(named[1]) if named else None)]
    for folder, pattern in (
        (place, r"step-(\d+)\.safetensors"),
        (place / "checkpoints", r"step-(\d+)\.safetensors"),
        (place, r"checkpoint-(\d+)"),
    ):
        names = ((path, re.fullmatch(pattern, path.name)) for path in folder.glob("*"))
        steps = {int(name[1]): path for path, name in names if name}
        if steps:
            return [Found(str(steps[step]), step) for step in sorted(steps)]
    hint = "the folder holds neither a model (config.json) nor checkpoints (step-N.safetensors, checkpoint-N)"
    raise InputError("model", str(model), hint)


def require_clones(clones: Clones) -> None:
    """Raise `InputError` if the folder has no clones yet."""
    if not clones.names:
        hint = "there are none in it yet: `trialogue clone` goes on in it"
        raise InputError("clones", str(clones.folder), hint)


@validated
def clone_losses(
    models: Iterable[str | Path],
    clones: Clones,
    *,
    rows: Count = 256,
    share: Annotated[float, Interval(gt=0, le=1)] = 1.0,
    seed: Natural = 0,
    device: str | torch.device | None = None,
    dtype: str = "float32",
    report: Callable[[str], object] = lambda _: None,
) -> Iterator[CloneLoss]:
    """The losses of `models` (see `checkpoints_of`) on the first `rows` of each of `clones`, as they are measured.

    Masked models are asked about a `share` of the sites of each row, drawn by `seed`, each in a copy of its own; causal
    ones about all tokens but the first of a row. `report` is told of what is being done. Raises `InputError` where
    there are no clones, for the first model that cannot be had or asked (`asker_of`), and for rows that are too long.
    """
    series = {str(model): checkpoints_of(model) for model in models}
    if not series:
        raise InputError("model", None, "name at least one")
    held = list(clones)
    require_clones(clones)
    for model, found in series.items():
        for checkpoint in found:
            report(checkpoint.place)
            asker = asker_of(checkpoint.place, clones, device=device, dtype=dtype)
            for clone in held:
                yield asker.loss(clone, rows, share, seed, model=model, step=checkpoint.step)
