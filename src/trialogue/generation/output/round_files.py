"""Files that allow an interrupted run to continue with samplers that learn from earlier samples.

The folder `FILE.tables` next to an output file has one file for each prompt, with the state that the next
samples start from. It is written after the samples of a round (a group of samples with the same start), so it
is never ahead of the output file.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.generation.output.sink import Key
from trialogue.generation.settings import GenerationSettings
from trialogue.samplers import PromptRounds
from trialogue.tensor_files import read_tensors, write_tensors

_KIND = "trialogue-rounds-1"
_OTHER_FILE = "use another output file or overwrite it with --force"


class RoundFiles:
    """Stores, for each prompt of a run, the sampler state from which its next samples start.

    Args:
        settings: Settings of the run.
        folder: Folder of the files. None stores nothing, so that an interrupted run cannot continue.
        warn: Function called with the text of each warning.
    """

    def __init__(
        self, settings: GenerationSettings, folder: Path | None, warn: Callable[[str], None]
    ) -> None:
        self._settings, self._folder, self._warn = settings, folder, warn
        self._rounds: dict[int, PromptRounds] = {}
        self._saved: dict[int, int] = {}
        self._identity, self._own = settings.identity(), settings.prompt_identities
        self._replace = settings.destination.force

    def read(self, places: Iterable[int]) -> None:
        """Read the files of prompts, unless `--force` discards them.

        Args:
            places: Indices of the prompts.

        Raises:
            InputError: If a file is damaged, or belongs to a run with other settings or prompts.
        """
        for place in places:
            tensors, finished, path = None, 0, self._path(place)
            if path is not None and path.exists() and not self._replace:
                tensors, metadata = read_tensors(path, _KIND, f"delete it, or {_OTHER_FILE}")
                self._require_same(path, metadata, self._metadata(place))
                finished = metadata["finished"]
            self._rounds[place] = PromptRounds(self._settings.sampler, finished, tensors)
            self._saved[place] = finished

    def rounds(self, place: int) -> PromptRounds:
        """Return the rounds of a prompt.

        Args:
            place: Index of the prompt.
        """
        return self._rounds[place]

    def find_samples_to_repeat(self, keys: Sequence[Key]) -> list[Key]:
        """Return the finished samples that must be generated again, to restore the states that later samples need.

        These are the samples of unfinished rounds. If the file of a prompt is missing or incomplete, they are all
        samples before the last one of `keys`.

        Args:
            keys: Index of the prompt, and index of the sample within the prompt, of all samples to generate.
        """
        if self._replace:
            self._delete()
        wanted: dict[int, set[int]] = {}
        for place, sample in keys:
            wanted.setdefault(place, set()).add(sample)
        self.read(place for place in wanted if place not in self._rounds)
        repeated, lost = list[Key](), 0
        for place, samples in wanted.items():
            if self._rounds[place].ended > min(samples):
                # The output file has lost samples, and the state before them is unknown.
                self._rounds[place] = PromptRounds(self._settings.sampler)
            again = sorted(set(range(self._rounds[place].ended, max(samples))) - samples)
            size = self._settings.sampler.round_size
            lost += len(again) if len(again) >= size else 0
            repeated += [(place, sample) for sample in again]
        if lost:
            self._warn(f"{lost} samples of the output file are drawn again, because their tables are missing")
        return repeated

    def save(self, places: Iterable[int]) -> None:
        """Write the files of prompts that have finished a round since the last call.

        The states of a prompt whose last sample is finished are removed from memory.

        Args:
            places: Indices of the prompts.
        """
        sampling = self._settings.sampling
        for place in set(places):
            rounds, path = self._rounds[place], self._path(place)
            if path is not None and rounds.finished != self._saved[place]:
                metadata = {**self._metadata(place), "finished": rounds.finished}
                write_tensors(path, _KIND, rounds.tensors(), metadata)
                self._saved[place] = rounds.finished
            if sampling.until is None and rounds.ended == sampling.n:
                self._rounds.pop(place).clear()

    def _delete(self) -> None:
        """Delete the files of an earlier run."""
        self._replace = False
        if self._folder is not None:
            for path in self._folder.glob("*.safetensors"):
                path.unlink()

    def _path(self, place: int) -> Path | None:
        if self._folder is None:
            return None
        name = hashlib.sha256(json.dumps(self._settings.prompts[place].id).encode()).hexdigest()[:16]
        return self._folder / f"{name}.safetensors"

    def _metadata(self, place: int) -> dict[str, Any]:
        prompt = self._settings.prompts[place]
        settings = {**self._identity, **self._own.get(prompt.id, {})}
        named = {"prompt": {"id": prompt.id, **prompt.given()}, "settings": settings}
        return dict(json.loads(json.dumps(named)))

    def _require_same(self, path: Path, stored: dict[str, Any], own: dict[str, Any]) -> None:
        """Raise `InputError` that names the first setting that differs."""
        for before, now in ((stored["settings"], own["settings"]), (stored["prompt"], own["prompt"])):
            for name in (*now, *before):
                if before.get(name) != now.get(name):
                    hint = (
                        f"{path.parent.name}/{path.name} was created with {before.get(name)!r}: {_OTHER_FILE}"
                    )
                    raise InputError(name, now.get(name), hint)
