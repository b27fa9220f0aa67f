"""Translation by an autoregressive model: greedy search, beam search, and ranking of given candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.data.parallel.vocabulary import EOS, PAD
from trialogue.errors import InputError
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.oracles import Context
from trialogue.samplers.translation.hypotheses import NOTHING, Alpha, Translation, rank_hypotheses
from trialogue.validation import Count, InstanceOf, Natural, NonNegative, Several, validated


@validated
@dataclass(frozen=True)
class BeamSearch:
    """Translation by beam search, or greedy search with one hypothesis.

    Finished hypotheses stay in the beam. Hypotheses are ranked by the sum of the log-probabilities of their tokens and
    of the end-of-sequence token, divided by ((5 + length) / 6)^`alpha`.

    Args:
        hypotheses: Number of hypotheses in the beam (default: 1, greedy search).
        alpha: Exponent of the length normalisation (default: 0).
        ratio: A translation has at most `ratio` times the length of its source plus ten tokens (default: 2).
    """

    hypotheses: Count = 1
    alpha: Alpha = 0.0
    ratio: NonNegative = 2.0

    @validated
    def translate(
        self, twin: InstanceOf[CausalTranslator], sources: Several[Several[Natural]]
    ) -> list[Translation]:
        """Translate source sentences in one batch.

        Args:
            twin: The autoregressive translation model.
            sources: Token ids of each source.

        Returns:
            One translation per source, without the end-of-sequence token. An empty source has an empty translation.

        Raises:
            InputError: If a source is too long for the model.
        """
        places = [place for place, source in enumerate(sources) if len(source)]
        results = [NOTHING] * len(sources)
        if not places:
            return results
        most = twin.model.config.max_length
        max_lengths = [min(int(self.ratio * len(sources[place])) + 10, most) + 1 for place in places]
        with torch.inference_mode():
            oracle = twin.condition_each([sources[place] for place in places])
            context = oracle.open(len(places) * self.hypotheses, max(max_lengths))
            write = _greedy if self.hypotheses == 1 else _beams
            tokens, sums = write(context, self.hypotheses, torch.tensor(max_lengths))
        for place, rows, log_probs, max_length in zip(
            places, tokens.tolist(), sums.tolist(), max_lengths, strict=True
        ):
            texts = [_cut_at_end(row[:max_length]) for row in rows]
            best = rank_hypotheses(zip(texts, log_probs, strict=True), self.alpha, drop_repeats=False)
            results[place] = Translation(best, max(min(len(text) + 1, max_length) for text in texts))
        return results


@validated
def rerank(
    twin: CausalTranslator,
    sources: Sequence[Sequence[int]],
    translations: Sequence[Translation],
    alpha: Alpha = 0.0,
) -> list[Translation]:
    """Rank given candidate translations by their log-probabilities under an autoregressive model (Gu et al. 2018).

    Args:
        twin: The autoregressive translation model.
        sources: Token ids of each source sentence.
        translations: One translation per source, whose hypotheses are the candidates.
        alpha: Exponent of the length normalisation ((5 + length) / 6)^alpha (default: 0).

    Returns:
        Translations with the same hypotheses in a new order. Their log-probability includes the
        end-of-sequence token, and their number of decoder passes is one larger (except for empty sources).

    Raises:
        InputError: If the numbers of sources and translations differ, or one is too long for the model.
    """
    if len(translations) != len(sources):
        hint = f"give one translation for each of the {len(sources)} sources"
        raise InputError("translations", len(translations), hint)
    places = [place for place, source in enumerate(sources) if len(source)]
    candidates = [[each.tokens for each in translations[place].hypotheses] for place in places]
    log_probs = twin.log_probs([sources[place] for place in places], candidates)
    results = list(translations)
    for place, texts, scores in zip(places, candidates, log_probs, strict=True):
        best = rank_hypotheses(zip(texts, scores, strict=True), alpha, drop_repeats=False)
        results[place] = Translation(best, translations[place].passes + bool(texts))
    return results


def _cut_at_end(row: list[int]) -> list[int]:
    """Return the tokens before EOS. Without EOS, the last token is cut, because it is beyond the maximum length."""
    return [token for token in row[: row.index(EOS) if EOS in row else -1] if token != PAD]


def _greedy(context: Context, beams: int, max_lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the tokens (sources, 1, most) and log-probabilities (sources, 1) of greedy search.

    `max_lengths` (sources,) bounds the number of tokens including EOS. Shorter rows are padded with PAD.
    """
    sources, capacity = len(max_lengths), int(max_lengths.max())
    tokens = torch.full((sources, capacity), PAD)
    sums = torch.zeros(sources, dtype=torch.float64)
    rows = torch.arange(sources)
    for length in range(capacity):
        stop = torch.full_like(rows, length)
        prefixes = tokens if len(rows) == sources else tokens[rows]
        best, token = context.log_probs(context.features(prefixes, stop, stop, rows)).cpu().max(1)
        tokens[rows, length] = token
        sums[rows] += best
        rows = rows[(token != EOS) & (length + 1 < max_lengths[rows])]
        if not len(rows):
            break
    return tokens.view(sources, beams, capacity), sums[:, None]


def _beams(context: Context, beams: int, max_lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the tokens (sources, beams, most) and log-probabilities (sources, beams) of beam search.

    `max_lengths` (sources,) bounds the number of tokens including EOS. Shorter rows are padded with PAD.
    """
    sources, capacity = len(max_lengths), int(max_lengths.max())
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
        tokens, ended = (
            tokens[source],
            ended[source] | (token == EOS) | (length + 1 >= max_lengths.repeat(beams)),
        )
        tokens[:, length] = token
        if bool(ended.all()):
            break
    return tokens.view(beams, sources, capacity).transpose(0, 1), sums
