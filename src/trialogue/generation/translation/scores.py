"""How good translations are, and how often they stutter."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from trialogue.errors import InputError, require_text
from trialogue.extras import from_extra

_WORD = regex.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")


class Quality(NamedTuple):
    """BLEU (Papineni et al. 2002) and chrF (Popović 2015) of translations, from 0 to 100, and how each was taken."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str


class Stutter(NamedTuple):
    """Of each sentence: repeated words that the reference does not repeat, and pairs of adjacent words; int64 (n,)."""

    repeated: NDArray[np.int64]
    pairs: NDArray[np.int64]

    @property
    def rate(self) -> float:
        """The share of the pairs of all sentences that repeat a word; 0 where there is no pair."""
        return float(self.repeated.sum() / max(1, self.pairs.sum()))


def quality(outputs: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> Quality:
    """BLEU and chrF of `outputs` beside one reference each, both detokenised, by sacreBLEU (Post 2018).

    `tokenize` is a tokenizer of sacreBLEU's: "13a" or "intl" for languages with spaces, "zh" for Chinese, "char".
    Raises `InputError` where the two have unequal lengths, or none.
    """
    require_aligned(outputs, references)
    metrics = from_extra("sacrebleu.metrics", "score")
    bleu, chrf = metrics.BLEU(tokenize=tokenize), metrics.CHRF()
    scores = [metric.corpus_score(list(outputs), [list(references)]) for metric in (bleu, chrf)]
    return Quality(scores[0].score, str(bleu.get_signature()), scores[1].score, str(chrf.get_signature()))


def stutter(outputs: Sequence[str], references: Sequence[str]) -> Stutter:
    """How often consecutive words are repeated in `outputs`, but not in the reference of each.

    A pair of adjacent words of an output counts where both are the same and the reference has no such pair. Words are
    runs of letters and digits, and other marks one by one; case matters. The thesis (section 4.2.3) gives no
    definition: this one is ours. Raises `InputError` where the two have unequal lengths, or none.
    """
    require_aligned(outputs, references)
    counts = [
        _stutters(_WORD.findall(output), _WORD.findall(reference))
        for output, reference in zip(outputs, references, strict=True)
    ]
    repeated, pairs = np.array(counts, np.int64).T
    return Stutter(repeated, pairs)


def _stutters(words: list[str], reference: list[str]) -> tuple[int, int]:
    allowed = {left for left, right in itertools.pairwise(reference) if left == right}
    repeats = [left for left, right in itertools.pairwise(words) if left == right]
    return sum(word not in allowed for word in repeats), max(0, len(words) - 1)


def require_aligned(outputs: Sequence[str], references: Sequence[str]) -> None:
    """Raise `InputError` unless there is one reference for each output, and at least one."""
    if len(outputs) != len(references) or not len(outputs):
        counts = f"{len(outputs)} outputs and {len(references)} references"
        raise InputError("references", counts, "give one reference for each output, and at least one")
    for field, sentences in (("outputs", outputs), ("references", references)):
        for sentence in sentences:
            require_text(field, sentence)
