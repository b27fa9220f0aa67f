"""Quality scores of translations, and the rate of repeated words."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from trialogue.errors import InputError, require_text
from trialogue.extras import from_extra

_WORD = regex.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")


class TranslationQuality(NamedTuple):
    """BLEU (Papineni et al. 2002) and chrF (Popović 2015) scores of translations.

    Attributes:
        bleu: BLEU, from 0 to 100.
        bleu_signature: Signature of sacreBLEU for BLEU.
        chrf: chrF, from 0 to 100.
        chrf_signature: Signature of sacreBLEU for chrF.
    """

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str


class RepeatedWords(NamedTuple):
    """Number of repeated words in each of n sentences.

    A repeated word is a word that equals the word before it.

    Attributes:
        repeated: Number of repeated words in each sentence, without those that the reference also repeats, int64 of
            shape (n,).
        pairs: Number of pairs of adjacent words in each sentence, int64 of shape (n,).
    """

    repeated: NDArray[np.int64]
    pairs: NDArray[np.int64]

    @property
    def rate(self) -> float:
        """Number of repeated words divided by the number of pairs of adjacent words.

        Both numbers are sums over all sentences. The rate is 0 if there are no pairs.
        """
        return float(self.repeated.sum() / max(1, self.pairs.sum()))


def translation_quality(
    outputs: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> TranslationQuality:
    """Compute BLEU and chrF of translations with sacreBLEU (Post 2018).

    Args:
        outputs: Detokenized translations.
        references: One detokenized reference per translation.
        tokenize: Tokenizer of sacreBLEU. "13a" or "intl" for languages with spaces, "zh" for Chinese, "char" to split
            into characters.

    Returns:
        Both scores with the signatures of sacreBLEU.

    Raises:
        InputError: If the numbers of outputs and references differ or are zero.
    """
    require_aligned(outputs, references)
    metrics = from_extra("sacrebleu.metrics", "score")
    bleu, chrf = metrics.BLEU(tokenize=tokenize), metrics.CHRF()
    scores = [metric.corpus_score(list(outputs), [list(references)]) for metric in (bleu, chrf)]
    return TranslationQuality(
        scores[0].score, str(bleu.get_signature()), scores[1].score, str(chrf.get_signature())
    )


def count_repeated_words(outputs: Sequence[str], references: Sequence[str]) -> RepeatedWords:
    """Count words that a translation repeats and its reference does not.

    A word counts if it equals the word before it, and the reference does not have this word twice in a row. A
    word is a sequence of letters and digits, or a single other character. Upper and lower case differ.

    Args:
        outputs: Translations.
        references: One reference per translation.

    Returns:
        Counts of each translation.

    Raises:
        InputError: If the numbers of outputs and references differ or are zero.
    """
    require_aligned(outputs, references)
    counts = [
        _stutters(_WORD.findall(output), _WORD.findall(reference))
        for output, reference in zip(outputs, references, strict=True)
    ]
    repeated, pairs = np.array(counts, np.int64).T
    return RepeatedWords(repeated, pairs)


def _stutters(words: list[str], reference: list[str]) -> tuple[int, int]:
    allowed = {left for left, right in itertools.pairwise(reference) if left == right}
    repeats = [left for left, right in itertools.pairwise(words) if left == right]
    return sum(word not in allowed for word in repeats), max(0, len(words) - 1)


def require_aligned(outputs: Sequence[str], references: Sequence[str]) -> None:
    """Check that there is one reference per translation, and at least one translation.

    Args:
        outputs: Translations.
        references: Reference translations.

    Raises:
        InputError: If the numbers differ or are zero, or if a sentence is not a text.
    """
    if len(outputs) != len(references) or not len(outputs):
        counts = f"{len(outputs)} outputs and {len(references)} references"
        raise InputError("references", counts, "use one reference per output, and at least one")
    for field, sentences in (("outputs", outputs), ("references", references)):
        for sentence in sentences:
            require_text(field, sentence)
