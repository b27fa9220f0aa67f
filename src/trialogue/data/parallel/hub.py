"""Parallel corpora of the Hugging Face hub by name: those of Tables 4.1 to 4.3 of the thesis, with the hub's splits."""

from typing import Any, NamedTuple

from trialogue.data.corpus.hub import hub_datasets
from trialogue.data.parallel.splitting import Split, one_word_variants
from trialogue.data.parallel.text import ParallelText
from trialogue.errors import one_of


class HubPairs(NamedTuple):
    """Where a parallel corpus lies on the hub, and its two languages as codes of two letters."""

    repository: str
    configuration: str
    languages: tuple[str, str]


HUB_PAIRS: dict[str, HubPairs] = {
    "wmt14-de-en": HubPairs("wmt/wmt14", "de-en", ("de", "en")),
    "wmt16-ro-en": HubPairs("wmt/wmt16", "ro-en", ("ro", "en")),
    "wmt17-zh-en": HubPairs("wmt/wmt17", "zh-en", ("zh", "en")),
}
"""The corpora that have a name: 4.5, 0.6 and 20 million pairs."""


def hub_parallel(name: str, source: str) -> Split:
    """The corpus `name`, translated from the language `source`: what it is trained, validated and tested on.

    Raises `InputError` for a name or a language that it lacks, where `datasets` is not installed, and where the corpus
    cannot be had.
    """
    corpus = HUB_PAIRS[one_of("text", name, HUB_PAIRS)]
    one_of("source", source, corpus.languages)
    target = next(language for language in corpus.languages if language != source)
    splits = hub_datasets(name, corpus.repository, corpus.configuration, ("train", "validation", "test"))
    train, validation, test = (_pairs(dataset, source, target) for dataset in splits)
    return Split(train, validation, test, one_word_variants(test.targets, train.targets))


def _pairs(dataset: Any, source: str, target: str) -> ParallelText:
    pairs = dataset["translation"]
    return ParallelText([pair[source] for pair in pairs], [pair[target] for pair in pairs])
