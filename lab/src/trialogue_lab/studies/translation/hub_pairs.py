"""Parallel corpora of the Hugging Face hub by name, used in Tables 4.1 to 4.3 of the thesis, with the hub's splits."""

from typing import NamedTuple

from trialogue.data.corpus.hub import load_hub_datasets
from trialogue.data.parallel.splitting import Split
from trialogue.data.parallel.text import ParallelText
from trialogue.errors import require_choice


class HubPairs(NamedTuple):
    """A parallel corpus of the Hugging Face hub.

    Attributes:
        repository: Name of the repository.
        configuration: Configuration of the dataset.
        source: Two-letter code of the source language.
        target: Two-letter code of the target language.
    """

    repository: str
    configuration: str
    source: str
    target: str


_CORPORA = (("wmt14", "de", "en"), ("wmt16", "ro", "en"), ("wmt17", "zh", "en"))
HUB_PAIRS: dict[str, HubPairs] = {
    f"{corpus}-{source}-{target}": HubPairs(f"wmt/{corpus}", f"{first}-{second}", source, target)
    for corpus, first, second in _CORPORA
    for source, target in ((first, second), (second, first))
}
"""Corpora of 4.5, 0.6 and 20 million pairs by name, wmt14-de-en and so on, in both directions."""


def load_hub_pairs(name: str) -> Split:
    """Return the training, validation and test pairs of a corpus.

    Args:
        name: One of `HUB_PAIRS`.

    Raises:
        InputError: If there is no such corpus, `datasets` is not installed, or the download fails.
    """
    repository, configuration, source, target = HUB_PAIRS[require_choice("text", name, HUB_PAIRS)]
    parts = []
    for dataset in load_hub_datasets(name, repository, configuration, ("train", "validation", "test")):
        pairs = dataset["translation"]
        parts.append(ParallelText([pair[source] for pair in pairs], [pair[target] for pair in pairs]))
    return Split(*parts)
