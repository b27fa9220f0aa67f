"""Sequence-level distillation (Kim and Rush 2016): training on translations by a causal model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor
from tqdm import tqdm

from trialogue.models.encoder_decoder.network import append_eos
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.samplers.translation.writing import BeamSearch
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training.running.processes import get_processes
from trialogue.training.translation.recipes import list_rows

_AT_ONCE = 256
_KIND = "trialogue distilled targets 1"


def greedy_translations(
    twin: CausalTranslator, sources: Sequence[Sequence[int]], *, progress: bool = False
) -> list[list[int]]:
    """Translate each source greedily, in batches of similar length.

    Args:
        twin: Causal translator.
        sources: Token ids of each source, without EOS.
        progress: Whether to show a progress bar.

    Returns:
        Token ids of each translation, without EOS.
    """
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    translations: list[list[int]] = [[] for _ in sources]
    for start in tqdm(range(0, len(order), _AT_ONCE), unit="batch", disable=not progress, leave=False):
        places = order[start : start + _AT_ONCE]
        results = BeamSearch().translate(twin, [sources[place] for place in places])
        for place, result in zip(places, results, strict=True):
            translations[place] = result.best
    return translations


def cached_translations(
    twin: CausalTranslator, sources: Tensor, path: Path, *, progress: bool = False
) -> Tensor:
    """Translate encoded sources with a causal model, and store the translations in a file for later calls.

    Under torchrun, every process must call this function. Only the main process writes the file.

    Args:
        twin: Causal translator.
        sources: Source tokens with EOS and PAD, (n, S) int64.
        path: File for the translations.
        progress: Whether to show a progress bar.

    Returns:
        Translations with EOS and PAD, (n, T) int64. An empty translation is EOS alone.

    Raises:
        InputError: If the file is damaged.
    """
    together = get_processes()
    if not path.exists():
        # All processes translate, because a process that waits for hours would run into a timeout.
        shown = progress and together.is_main_process
        targets = append_eos(greedy_translations(twin, list_rows(sources), progress=shown))
        if together.is_main_process:
            write_tensors(path, _KIND, {"targets": targets}, {})
    together.wait_for_everyone()
    return read_tensors(path, _KIND, f"delete {path} to translate again")[0]["targets"]
