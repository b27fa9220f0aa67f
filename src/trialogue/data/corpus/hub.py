"""Named corpora from the Hugging Face hub, loaded with the library `datasets`."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trialogue.data.corpus.texts import END, Text, split_at_markers
from trialogue.errors import InputError
from trialogue.extras import from_extra

_BATCH_ROWS = 1000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class HubCorpus(NamedTuple):
    """Location of a corpus on the Hugging Face hub.

    Attributes:
        repository: Repository of the dataset.
        configuration: Configuration of the dataset, if any.
        train: Name of the training split.
        test: Name of the test split.
        documents: True if each row of the dataset is a document, false if it is a line.
    """

    repository: str
    configuration: str | None
    train: str
    test: str
    documents: bool


HUB: dict[str, HubCorpus] = {
    "tinystories": HubCorpus("roneneldan/TinyStories", None, "train", "validation", documents=True),
    "wikitext-103": HubCorpus("Salesforce/wikitext", "wikitext-103-raw-v1", "train", "test", documents=False),
}
"""Corpora by name."""


class HubText(Text):
    """Text in the column "text" of a Hugging Face dataset. Positions in the text are row indices.

    Args:
        dataset: A `datasets.Dataset`.
        documents: True if each row is a document, false if it is a line.
    """

    def __init__(self, dataset: Any, documents: bool) -> None:
        self.dataset, self.documents, self.size = dataset, documents, len(dataset)

    @property
    def identity(self) -> Any:
        """Fingerprint of the dataset, which differs for different texts."""
        return self.dataset._fingerprint

    def pieces(self, start: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Generate the pieces of the text, one row of the dataset at a time.

        A piece is a line of a row, or an end-of-document marker.

        Args:
            start: First row.

        Yields:
            Index of the next row, and the pieces of the row.
        """
        for first in range(start, self.size, _BATCH_ROWS):
            texts = self.dataset[first : first + _BATCH_ROWS]["text"]
            for row, text in enumerate(texts, first + 1):
                pieces = [piece for line in _LINE.findall(text) for piece in split_at_markers(line)]
                if self.documents and pieces[-1:] != [END]:
                    pieces.append(END)
                yield row, pieces


def load_hub_texts(name: str) -> tuple[HubText, HubText]:
    """Load a named corpus from the Hugging Face hub.

    Args:
        name: Key of `HUB`.

    Returns:
        Training text and test text.

    Raises:
        InputError: If the dataset cannot be loaded.
    """
    corpus = HUB[name]
    train, test = load_hub_datasets(
        name, corpus.repository, corpus.configuration, (corpus.train, corpus.test)
    )
    return HubText(train, corpus.documents), HubText(test, corpus.documents)


def load_hub_datasets(
    name: str, repository: str, configuration: str | None, splits: Sequence[str]
) -> list[Any]:
    """Load splits of a dataset from the hub.

    Args:
        name: Name of the text in error messages.
        repository: Repository of the dataset.
        configuration: Configuration of the dataset, if any.
        splits: Names of the splits.

    Returns:
        One `datasets.Dataset` per split.

    Raises:
        InputError: If `datasets` is not installed or the dataset cannot be loaded.
    """
    datasets = from_extra("datasets", "hub")
    try:
        return [datasets.load_dataset(repository, configuration, split=split) for split in splits]
    # Versions of the library raise different errors if the hub is not reachable.
    except (OSError, ValueError, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
        hint = (
            f"go online or use a local file, because {repository} could not be loaded from the hub ({reason})"
        )
        raise InputError("text", name, hint) from error
