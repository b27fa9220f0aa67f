"""Translation by the autoregressive twin: greedily, by beam search, or by ranking the candidates of a refiner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.data.parallel.vocabulary import EOS, PAD
from trialogue.errors import InputError
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.oracles import Context
from trialogue.samplers.translation.hypotheses import NOTHING, Alpha, Translation, ranked
from trialogue.validation import Count, InstanceOf, Natural, NonNegative, Several, validated


@validated
@dataclass(frozen=True)
class BeamSearch:
    """The `hypotheses` best continuations are kept at every token; one of them is the greedy translation.

    Finished ones stay among them. They are ranked by the sum of log-probabilities, that of EOS with it, over
    ((5 + length) / 6)^`alpha`. A translation has at most `ratio` times the tokens of its source and ten more. Raises
    `InputError` for fields out of range.
    """

    hypotheses: Count = 1
    alpha: Alpha = 0.0
    ratio: NonNegative = 2.0

    @validated
    def translate(
        self, twin: InstanceOf[CausalTranslator], sources: Several[Several[Natural]]
    ) -> list[Translation]:
        """Translations of `sources`, tokens without EOS, evaluated side by side; empty ones of empty sources.

        Raises `InputError` where a source is too long for the model.
        """
        told = [place for place, source in enumerate(sources) if len(source)]
        answers = [NOTHING] * len(sources)
        if not told:
            return answers
        most = twin.model.config.max_length
        rooms = [min(int(self.ratio * len(sources[place])) + 10, most) + 1 for place in told]
        with torch.inference_mode():
            oracle = twin.condition_each([sources[place] for place in told])
            context = oracle.open(len(told) * self.hypotheses, max(rooms))
            write = _greedy if self.hypotheses == 1 else _beams
            tokens, sums = write(context, self.hypotheses, torch.tensor(rooms))
        for place, rows, log_probs, room in zip(told, tokens.tolist(), sums.tolist(), rooms, strict=True):
            texts = [_until_end(row[:room]) for row in rows]
            best = ranked(zip(texts, log_probs, strict=True), self.alpha, drop_repeats=False)
            answers[place] = Translation(best, max(min(len(text) + 1, room) for text in texts))
        return answers


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


def _until_end(row: list[int]) -> list[int]:
    """What stands before EOS; where a row has none, there was no room for it, and the last token makes some."""
    return [token for token in row[: row.index(EOS) if EOS in row else -1] if token != PAD]


def _greedy(context: Context, beams: int, rooms: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens (sources, 1, most) of the likeliest next tokens, and their log-probabilities (sources, 1).

    Of each source at most as many as `rooms` (sources,) says, EOS with them; PAD is in what is left.
    """
    sources, capacity = len(rooms), int(rooms.max())
    tokens = torch.full((sources, capacity), PAD)
    sums = torch.zeros(sources, dtype=torch.float64)
    rows = torch.arange(sources)
    for length in range(capacity):
        stop = torch.full_like(rows, length)
        asked = tokens if len(rows) == sources else tokens[rows]
        best, token = context.log_probs(context.features(asked, stop, stop, rows)).cpu().max(1)
        tokens[rows, length] = token
        sums[rows] += best
        rows = rows[(token != EOS) & (length + 1 < rooms[rows])]
        if not len(rows):
            break
    return tokens.view(sources, beams, capacity), sums[:, None]


def _beams(context: Context, beams: int, rooms: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens (sources, beams, most) of the best continuations, and their log-probabilities (sources, beams).

    Of each source at most as many as `rooms` (sources,) says, as in `_greedy`. Storage row i is of source i modulo
    their number: the beams of a source are as many rows apart.
    """
    sources, capacity = len(rooms), int(rooms.max())
    tokens = torch.full((beams * sources, capacity), PAD)
    sums = torch.full((sources, beams), -torch.inf, dtype=torch.float64)
    sums[:, 0] = 0
    ended = torch.zeros(beams * sources, dtype=torch.bool)
    rows, number = torch.arange(beams * sources), torch.arange(sources)[:, None]
    for length in range(capacity):
        stop = torch.full_like(rows, length)
        distributions = context.log_probs(context.features(tokens, stop, stop, rows)).cpu().double()
        distributions[ended] = -torch.inf
        distributions[ended, PAD] = 0
        totals = sums[:, :, None] + distributions.view(beams, sources, -1).transpose(0, 1)
        sums, index = totals.flatten(1).topk(beams, 1)
        parent, token = index // distributions.shape[1], (index % distributions.shape[1]).T.flatten()
        source = (parent * sources + number).T.flatten()
        context.copy(source, rows, 0, length)
        tokens, ended = tokens[source], ended[source] | (token == EOS) | (length + 1 >= rooms.repeat(beams))
        tokens[:, length] = token
        if bool(ended.all()):
            break
    return tokens.view(beams, sources, capacity).transpose(0, 1), sums
