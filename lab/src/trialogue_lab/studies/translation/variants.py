"""Test sentences that differ from a training sentence in at most one word."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trialogue.data.parallel.splitting import normalise_sentence

_HOLE = "\0"


def find_one_word_variants(sentences: list[str], known: list[str]) -> NDArray[np.bool_]:
    """Return which sentences are equal to a known sentence, up to one word.

    The word is replaced, added or removed. Case and punctuation are ignored.

    Args:
        sentences: Sentences to test.
        known: Known sentences.

    Returns:
        Array of bools (len(sentences),).
    """
    complete = {normalise_sentence(sentence) for sentence in known}
    patterns = {pattern for sentence in complete for pattern in _replace_each_word(sentence)}
    shortened = {_without_hole(pattern) for pattern in patterns}
    return np.array(
        [
            sentence in complete
            or sentence in shortened
            or any(
                pattern in patterns or _without_hole(pattern) in complete
                for pattern in _replace_each_word(sentence)
            )
            for sentence in map(normalise_sentence, sentences)
        ],
        bool,
    )


def _replace_each_word(sentence: str) -> Iterator[str]:
    """Yield copies of a sentence in which one word is replaced by a placeholder.

    A sentence of one word yields nothing.
    """
    words = sentence.split()
    if len(words) > 1:
        for place in range(len(words)):
            yield " ".join((*words[:place], _HOLE, *words[place + 1 :]))


def _without_hole(pattern: str) -> str:
    return " ".join(pattern.replace(_HOLE, "").split())
