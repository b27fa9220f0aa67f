"""A refiner's candidates ranked by the twin, which reads all of them in one parallel pass."""

from __future__ import annotations

from collections.abc import Sequence

from trialogue.errors import InputError
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.samplers.translation.hypotheses import Alpha, Translation, ranked
from trialogue.validation import validated


@validated
def rescored(
    twin: CausalTranslator,
    sources: Sequence[Sequence[int]],
    translations: Sequence[Translation],
    alpha: Alpha = 0.0,
) -> list[Translation]:
    """`translations` of `sources`, their hypotheses ranked by what the twin gives them (Gu et al. 2018).

    A hypothesis then has the twin's log-probability of its tokens and EOS; it is ranked by that over
    ((5 + length) / 6)^`alpha`. One more pass of a decoder is counted, and none where the source is empty. Raises
    `InputError` for sources or hypotheses that are too long for the twin, and where there are not as many of both.
    """
    if len(translations) != len(sources):
        hint = f"give one of each of the {len(sources)} sources"
        raise InputError("translations", len(translations), hint)
    told = [place for place, source in enumerate(sources) if len(source)]
    candidates = [[each.tokens for each in translations[place].hypotheses] for place in told]
    log_probs = twin.log_probs([sources[place] for place in told], candidates)
    answers = list(translations)
    for place, texts, scores in zip(told, candidates, log_probs, strict=True):
        best = ranked(zip(texts, scores, strict=True), alpha, drop_repeats=False)
        answers[place] = Translation(best, translations[place].passes + bool(texts))
    return answers
