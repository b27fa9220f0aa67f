"""Test sentences that differ from a training sentence in one word."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trialogue.data.parallel.splitting import normalised


def one_word_variants(sentences: list[str], known: list[str]) -> NDArray[np.bool_]:
    """Which of `sentences` are one of `known` up to one word replaced, added or left out, case and punctuation aside.

    Booleans (len(sentences),). A sentence of `known` itself is a variant too.
    """
    whole: set[str] = set()
    opened: set[str] = set()
    for sentence in {normalised(sentence) for sentence in known}:
        whole.add(sentence)
        opened.update(_opened(sentence))
    shortened = {" ".join(pattern.replace(_HOLE, "").split()) for pattern in opened}
    return np.array(
        [
            sentence in whole
            or sentence in shortened
            or any(
                pattern in opened or " ".join(pattern.replace(_HOLE, "").split()) in whole
                for pattern in _opened(sentence)
            )
            for sentence in map(normalised, sentences)
        ],
        bool,
    )


_HOLE = "\0"


def _opened(sentence: str) -> Iterator[str]:
    """`sentence` with a hole for each of its words; one word alone says too little to be the variant of another."""
    words = sentence.split()
    if len(words) > 1:
        for place in range(len(words)):
            yield " ".join((*words[:place], _HOLE, *words[place + 1 :]))
