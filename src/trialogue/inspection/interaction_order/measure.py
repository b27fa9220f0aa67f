"""Search for the checkpoints of models, and computation of their losses on clones of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
from annotated_types import Interval

from trialogue.data.clones import Clones
from trialogue.errors import InputError
from trialogue.inspection.interaction_order.clone_scorers import CloneLoss, load_clone_scorer
from trialogue.models.hub.catalogue import CATALOGUE
from trialogue.validation import Count, Natural, validated


class CheckpointLocation(NamedTuple):
    """Location of a checkpoint.

    Attributes:
        place: Path, hub id or short name.
        step: Training step, None if unknown.
    """

    place: str
    step: int | None


def find_checkpoints(model: str | Path) -> list[CheckpointLocation]:
    """Find the checkpoints of a model, in the order of their training steps.

    Args:
        model: A single checkpoint, or a folder written during training. The folder, or its subfolder
            `checkpoints`, contains files of `trialogue.training.Checkpoints` or folders `checkpoint-N` of the
            transformers trainer.

    Returns:
        Locations of the checkpoints with their training steps.

    Raises:
        InputError: If the folder contains neither a model nor checkpoints.
    """
    place = Path(model)
    # A short name takes precedence over a folder with the same name, which may hold the results for this model.
    if str(model) in CATALOGUE:
        return [CheckpointLocation(str(model), None)]
    if not place.is_dir() or (place / "config.json").exists() or (place / "adapter_config.json").exists():
        name = re.fullmatch(r"step-(\d+)\.safetensors", place.name)
        return [CheckpointLocation(str(model), int(name[1]) if name else None)]
    for folder, pattern in (
        (place, r"step-(\d+)\.safetensors"),
        (place / "checkpoints", r"step-(\d+)\.safetensors"),
        (place, r"checkpoint-(\d+)"),
    ):
        names = ((path, re.fullmatch(pattern, path.name)) for path in folder.glob("*"))
        steps = {int(name[1]): path for path, name in names if name}
        if steps:
            return [CheckpointLocation(str(steps[step]), step) for step in sorted(steps)]
    hint = (
        "the folder contains neither a model (config.json) nor checkpoints (step-N.safetensors, checkpoint-N)"
    )
    raise InputError("model", str(model), hint)


def require_clones(clones: Clones) -> None:
    """Raise `InputError` if a folder of clones is empty.

    Args:
        clones: Folder of clones of a text.

    Raises:
        InputError: If the folder contains no clones yet.
    """
    if not clones.names:
        hint = "the folder has no clones yet. Run `trialogue clone` again to make them"
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
    """Compute the losses of models on clones of a text.

    A clone is a copy of a text in which only interactions of tokens up to a chosen order remain.

    Args:
        models: Models, or folders with the checkpoints of training runs.
        clones: Folder of the clones.
        rows: Number of rows of each clone to use, starting with the first.
        share: Fraction of the tokens of each row that a masked model predicts, each in a separate copy of the row. A
            causal model predicts all tokens but the first.
        seed: Random seed for the choice of these tokens.
        device: Torch device. By default a GPU if there is one.
        dtype: Name of the dtype of the weights of a Hugging Face checkpoint.
        report: Called with the location of each checkpoint before it is loaded.

    Yields:
        The loss of each checkpoint on each clone.

    Raises:
        InputError: If the folder contains no clones, a model cannot be loaded or scored, or the rows are too long for a
            model.
    """
    checkpoints_by_model = {str(model): find_checkpoints(model) for model in models}
    if not checkpoints_by_model:
        raise InputError("model", None, "give at least one")
    all_clones = list(clones)
    require_clones(clones)
    for model, checkpoints in checkpoints_by_model.items():
        for checkpoint in checkpoints:
            report(checkpoint.place)
            scorer = load_clone_scorer(checkpoint.place, clones, device=device, dtype=dtype)
            for clone in all_clones:
                yield scorer.loss(clone, rows, share, seed, model=model, step=checkpoint.step)
