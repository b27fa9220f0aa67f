"""Corpora of the Hugging Face hub by name, read through the library `datasets`."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trialogue.data.corpus.texts import END, Text, pieces_of
from trialogue.errors import InputError
from trialogue.extras import from_extra

_AT_ONCE = 1000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class HubCorpus(NamedTuple):
    """Where a corpus lies on the hub; `documents`: each of its rows is one, and not a line of one."""

    repository: str
    configuration: str | None
    train: str
    test: str
    documents: bool


HUB: dict[str, HubCorpus] = {
    "tinystories": HubCorpus("roneneldan/TinyStories", None, "train", "validation", documents=True),
    "wikitext-103": HubCorpus("Salesforce/wikitext", "wikitext-103-raw-v1", "train", "test", documents=False),
}
"""The corpora that have a name."""


class HubText(Text):
    """The column "text" of `dataset`, a `datasets.Dataset`, which the library keeps on disk. Positions are rows."""

    def __init__(self, dataset: Any, documents: bool) -> None:
        self.dataset, self.documents, self.size = dataset, documents, len(dataset)

    @property
    def identity(self) -> Any:
        """The fingerprint that the library gives the dataset."""
        return self.dataset._fingerprint

    def pieces(self, start: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Pieces of one row at a time."""
        for first in range(start, self.size, _AT_ONCE):
            texts = self.dataset[first : first + _AT_ONCE]["text"]
            for row, text in enumerate(texts, first + 1):
                pieces = [piece for line in _LINE.findall(text) for piece in pieces_of(line)]
                if self.documents and pieces[-1:] != [END]:
                    pieces.append(END)
                yield row, pieces


def hub_texts(name: str) -> tuple[HubText, HubText]:
    """The text to train on and that for tests of the corpus `name`, the hub's own splits.

    Raises `InputError` as `hub_datasets` does.
    """
    corpus = HUB[name]
    train, test = hub_datasets(name, corpus.repository, corpus.configuration, (corpus.train, corpus.test))
    return HubText(train, corpus.documents), HubText(test, corpus.documents)


def hub_datasets(name: str, repository: str, configuration: str | None, splits: Sequence[str]) -> list[Any]:
    """The `splits` of a dataset of the hub, each a `datasets.Dataset`, for a text that a user calls `name`.

    Raises `InputError` where `datasets` is not installed, and where the dataset cannot be had.
    """
    datasets = from_extra("datasets", "hub")
    try:
        return [datasets.load_dataset(repository, configuration, split=split) for split in splits]
    # What a hub that is out of reach raises differs between versions of the library.
    except (OSError, ValueError, RuntimeError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
        hint = f"{repository} cannot be had from the hub ({first}): go online, or name a local file"
        raise InputError("text", name, hint) from error
