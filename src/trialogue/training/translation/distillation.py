"""Distillation: the targets of a training are what the twin makes of its sources (Kim and Rush 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor
from tqdm import tqdm

from trialogue.models.encoder_decoder.network import ended
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.samplers.translation.writing import BeamSearch
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training.running.processes import processes
from trialogue.training.translation.recipes import rows_of

_AT_ONCE = 256
_KIND = "trialogue distilled targets 1"


def distilled(
    twin: CausalTranslator, sources: Sequence[Sequence[int]], *, progress: bool = False
) -> list[list[int]]:
    """Return the twin's greedy translation of each of `sources`, tokens without EOS.

    Sources of a like length are translated together.
    """
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    found: list[list[int]] = [[] for _ in sources]
    for start in tqdm(range(0, len(order), _AT_ONCE), unit="batch", disable=not progress, leave=False):
        places = order[start : start + _AT_ONCE]
        answers = BeamSearch().translate(twin, [sources[place] for place in places])
        for place, answer in zip(places, answers, strict=True):
            found[place] = answer.best
    return found


def kept_translations(
    twin: CausalTranslator, sources: Tensor, path: Path, *, progress: bool = False
) -> Tensor:
    """What `distilled` makes of encoded `sources` (n, S), as targets (n, T) with EOS and PAD, kept in the file `path`.

    A training that goes on does not translate again. An empty answer is the EOS alone. Under torchrun every process
    calls this, and the main one alone writes. Raises `InputError` for a damaged file.
    """
    together = processes()
    if not path.exists():
        # All translate: one that waits for hours is taken for dead.
        shown = progress and together.is_main_process
        targets = ended(distilled(twin, rows_of(sources), progress=shown))
        if together.is_main_process:
            write_tensors(path, _KIND, {"targets": targets}, {})
    together.wait_for_everyone()
    return read_tensors(path, _KIND, f"delete {path}, so that it is made again")[0]["targets"]
