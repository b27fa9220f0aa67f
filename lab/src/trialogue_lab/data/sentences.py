"""A small synthetic text for trial runs of studies."""

from itertools import product
from pathlib import Path

from filelock import FileLock

from trialogue.data.corpus.corpus import Corpus
from trialogue.storage import atomic_write

WORDS = (
    ("Lily", "Tom", "Max", "Sue", "Ben", "Anna"),
    ("saw", "found", "liked", "lost", "took"),
    ("red", "blue", "big", "shiny", "old"),
    ("ball", "box", "cat", "stone", "cup", "tree", "hat"),
)
"""Subjects, verbs, adjectives and nouns of synthetic sentences."""
_TEST_SHARE = 0.2


def corpus_or_sentences(
    text: str, folder: Path, *, vocab_size: int, length: int, test_share: float
) -> Corpus:
    """Return the corpus of a text, or of synthetic sentences if `text` is empty.

    Args:
        text: Text, as `Corpus.open` accepts it.
        folder: Folder for cached files.
        vocab_size: Size of the vocabulary.
        length: Length of a sequence.
        test_share: Share at the end of a text without its own split that is used for tests. The synthetic
            sentences use a fifth.
    """
    if not text:
        made_up = folder / "sentences.txt"
        with FileLock(folder / ".sentences.lock"):
            if not made_up.exists():
                atomic_write(made_up, _make_sentences())
        text, test_share = str(made_up), _TEST_SHARE
    return Corpus.open(
        text, vocab_size=vocab_size, length=length, test_share=test_share, cache=folder / "corpus"
    )


def _make_sentences() -> str:
    """Return about a thousand synthetic sentences."""
    sentences = [f"{who} {did} a {how} {what}." for who, did, how, what in product(*WORDS)]
    # In this order, consecutive sentences have little in common.
    return "\n".join(sentences[(place * 617) % len(sentences)] for place in range(len(sentences))) + "\n"
