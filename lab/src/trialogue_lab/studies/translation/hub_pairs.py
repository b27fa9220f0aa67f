"""Parallel corpora of the Hugging Face hub by name: those of Tables 4.1 to 4.3 of the thesis, with the hub's splits."""

from typing import Any, NamedTuple

from trialogue.data.corpus.hub import hub_datasets
from trialogue.data.parallel.splitting import Split
from trialogue.data.parallel.text import ParallelText
from trialogue.errors import one_of


class HubPairs(NamedTuple):
    """Where a parallel corpus lies on the hub, and what is translated into what, as codes of two letters."""

    repository: str
    configuration: str
    source: str
    target: str


_CORPORA = (("wmt14", "de", "en"), ("wmt16", "ro", "en"), ("wmt17", "zh", "en"))
HUB_PAIRS: dict[str, HubPairs] = {
    f"{corpus}-{source}-{target}": HubPairs(f"wmt/{corpus}", f"{one}-{other}", source, target)
    for corpus, one, other in _CORPORA
    for source, target in ((one, other), (other, one))
}
"""The corpora that have a name, wmt14-de-en and so on in both directions: 4.5, 0.6 and 20 million pairs."""


def hub_parallel(name: str) -> Split:
    """What `name`, one of `HUB_PAIRS`, is trained, validated and tested on.

    Raises `InputError` for another name, where `datasets` is not installed, and where the corpus cannot be had.
    """
    repository, configuration, source, target = HUB_PAIRS[one_of("text", name, HUB_PAIRS)]
    splits = hub_datasets(name, repository, configuration, ("train", "validation", "test"))
    train, validation, test = (_pairs(dataset, source, target) for dataset in splits)
    return Split(train, validation, test)


def _pairs(dataset: Any, source: str, target: str) -> ParallelText:
    pairs = dataset["translation"]
    return ParallelText([pair[source] for pair in pairs], [pair[target] for pair in pairs])
