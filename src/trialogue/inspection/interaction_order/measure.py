"""Losses of models on clones, checkpoint by checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from trialogue.data.clones import Clones
from trialogue.errors import InputError, probability, whole_number
from trialogue.inspection.interaction_order.askers import asker_of
from trialogue.models.catalogue import CATALOGUE
from trialogue.training.corpus_losses import Score


class Found(NamedTuple):
    """A checkpoint: where it is, and after how many steps of a training it was written, where that is known."""

    place: str
    step: int | None


@dataclass(frozen=True, kw_only=True)
class CloneLoss:
    """What a `model` makes of a clone after `step` updates, where that is known.

    `max_order` is the most bodies that the `clone` keeps interactions of, None for all. `causal` says which
    conditionals were asked for. A model that was asked in tokens of its own has `tokens_per_byte` of the text; of one
    that has those of the clones it is None.
    """

    model: str
    step: int | None
    clone: str
    max_order: int | None
    causal: bool
    score: Score
    tokens_per_byte: float | None

    @property
    def loss(self) -> float:
        """The loss in nats: per byte of text, where the model was asked in tokens of its own, and else per token."""
        return self.score.loss * self._scale

    @property
    def error(self) -> float:
        """Its standard error."""
        return self.score.error * self._scale

    @property
    def _scale(self) -> float:
        return 1.0 if self.tokens_per_byte is None else self.tokens_per_byte


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


def clone_losses(
    models: Iterable[str | Path],
    clones: Clones,
    *,
    rows: int = 256,
    share: float = 1.0,
    seed: int = 0,
    device: str | torch.device | None = None,
    dtype: str = "float32",
    report: Callable[[str], object] | None = None,
) -> Iterator[CloneLoss]:
    """The losses of `models` (see `checkpoints_of`) on the first `rows` of each of `clones`, as they are measured.

    Masked models are asked about a `share` of the sites of each row, drawn by `seed`, each in a copy of its own; causal
    ones about all tokens but the first of a row. `report` is told of what is being done. Raises `InputError` where
    there are no clones, for the first model that cannot be had or asked (`asker_of`), and for rows that are too long.
    """
    rows, share = whole_number("rows", rows, 1), probability("share", share, zero=False)
    seed = whole_number("seed", seed, 0)
    series = {str(model): checkpoints_of(model) for model in models}
    if not series:
        raise InputError("model", None, "name at least one")
    held = list(clones)
    if not held:
        raise InputError(
            "clones", str(clones.folder), "there are none in it yet: `trialogue clone` goes on in it"
        )
    for model, found in series.items():
        for checkpoint in found:
            if report is not None:
                report(checkpoint.place)
            asker = asker_of(checkpoint.place, clones, device=device, dtype=dtype)
            for clone in held:
                answer = asker.answer(clone, rows, share, seed)
                yield CloneLoss(
                    model=model,
                    step=checkpoint.step,
                    clone=clone.name,
                    max_order=clone.max_order,
                    causal=asker.causal,
                    score=answer.score,
                    tokens_per_byte=answer.tokens_per_byte,
                )
