"""Translation by parallel refinement: all target tokens are predicted at once, several times."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from trialogue.data.parallel.vocabulary import PAD, SPECIAL
from trialogue.models.encoder_decoder.refiner import RefinedRows, Refiner
from trialogue.randomness import Streams, random_bits
from trialogue.samplers.chains.refinement import Refinement, RefinementState
from trialogue.samplers.translation.hypotheses import NOTHING, Alpha, Translation, rank_hypotheses
from trialogue.validation import Count, InstanceOf, Natural, Several, validated


@validated
@dataclass(frozen=True)
class LengthBeam:
    """Translate by refining all target tokens in parallel, for each of the most probable target lengths.

    A candidate starts from random tokens or masks, and each step replaces all of its tokens in parallel. The
    candidates are ranked by the sum of the log-probabilities of their tokens in the last step, divided by ((5
    + length) / 6)^`alpha`.

    Args:
        steps: Number of refinement steps (default: 4).
        hypotheses: Number of target lengths (default: 5).
        chain: The refinement chain (default: `Refinement()`).
        alpha: Exponent of the length normalisation (default: 0).
        drop_repeats: Remove tokens that equal the token before them (default: True).
    """

    steps: Count = 4
    hypotheses: Count = 5
    chain: Refinement = field(default_factory=Refinement)
    alpha: Alpha = 0.0
    drop_repeats: bool = True

    @validated
    def translate(
        self,
        refiner: InstanceOf[Refiner],
        sources: Several[Several[Natural]],
        *,
        seed: Natural = 0,
        numbers: Several[Natural] | None = None,
    ) -> list[Translation]:
        """Translate source sentences in one batch.

        The random stream of a source depends on `seed` and its entry in `numbers`, not on the other sources.

        Args:
            refiner: The refinement model.
            sources: Token ids of each source.
            seed: Seed of the random streams (default: 0).
            numbers: Keys of the random streams, one per source (default: index of the source).

        Returns:
            One translation per source, without the end-of-sequence token. An empty source has an empty translation.

        Raises:
            InputError: If a source is too long for the model.
        """
        places = [place for place, source in enumerate(sources) if len(source)]
        translations = [NOTHING] * len(sources)
        if not places:
            return translations
        with torch.inference_mode():
            model, distributions = refiner.condition_each([sources[place] for place in places])
            lengths = most_probable_lengths(distributions, self.hypotheses)
            named = places if numbers is None else [numbers[place] for place in places]
            found = self._refine(model, lengths, torch.tensor(named), seed)
        for place, translation in zip(places, found, strict=True):
            translations[place] = translation
        return translations

    def _refine(self, model: RefinedRows, lengths: Tensor, numbers: Tensor, seed: int) -> list[Translation]:
        """Translate every source, with one candidate for each of its target `lengths` (sources, beams)."""
        beams = lengths.shape[1]
        ids = (numbers[:, None] * self.hypotheses + torch.arange(beams)).flatten().to(lengths.device)
        streams = Streams(seed, ids)
        rows = model.rows(torch.arange(len(ids), device=lengths.device) // beams)
        state = self.chain.init(rows, random_targets(lengths.flatten(), model.vocab_size, streams))
        run = _Beams(self.chain, rows, state, streams)
        for _ in range(self.steps):
            if not run.step():
                break
        tokens, sums = run.ended.tokens.tolist(), run.ended.scores.double().sum(1).tolist()
        counts, passes = lengths.flatten().tolist(), run.passes.tolist()
        translations = []
        for start in range(0, len(ids), beams):
            held = range(start, start + beams)
            candidates = [(tokens[row][: counts[row]], sums[row]) for row in held]
            best = rank_hypotheses(candidates, self.alpha, self.drop_repeats)
            translations.append(Translation(best, max(passes[row] for row in held)))
        return translations


class _Beams:
    """Current tokens of all candidate translations, and whether each may still change."""

    def __init__(
        self, chain: Refinement, model: RefinedRows, state: RefinementState, streams: Streams
    ) -> None:
        self._chain, self._model, self._state, self._streams = chain, model, state, streams
        self._rows = torch.arange(len(state.tokens), device=state.tokens.device)
        self._changing = torch.ones_like(self._rows, dtype=torch.bool)
        self.ended = state
        self.passes = torch.zeros_like(self._rows)

    def step(self) -> bool:
        """Take one step, and return whether another step may change a candidate."""
        before = self._state
        after, _ = self._chain.step(self._model, before, self._streams.choose)
        self._state = after
        self.passes[self._rows] += self._changing
        if len(self._rows) == len(self.passes):
            self.ended = after
        else:
            parts = zip(self.ended, after, strict=True)
            self.ended = RefinementState(*(whole.index_copy(0, self._rows, part) for whole, part in parts))
        if self._chain.keep == "confident":
            self._changing = after.masked.any(1)
        elif self._chain.choice == "argmax":
            self._changing = self._changing & ((after.tokens != before.tokens).any(1) | before.masked.any(1))
        left = int(self._changing.sum())
        # Selecting rows copies the encoded sources, which pays off if few rows are left.
        if left and 2 * left <= len(self._rows):
            kept = self._changing.nonzero()[:, 0]
            self._rows, self._model = self._rows[kept], self._model.rows(kept)
            self._changing, self._state = (
                self._changing[kept],
                RefinementState(*(part[kept] for part in after)),
            )
            self._streams = self._streams.of(kept)
        return left > 0


def most_probable_lengths(distributions: Tensor, count: int) -> Tensor:
    """Return the most probable target lengths, at least 1.

    Args:
        distributions: Probabilities or log-probabilities (n, lengths) of the lengths.
        count: Number of lengths.

    Returns:
        Lengths (n, count), or fewer columns if there are fewer lengths.
    """
    return distributions[:, 1:].topk(min(count, distributions.shape[1] - 1), 1).indices + 1


def random_targets(lengths: Tensor, vocab_size: int, streams: Streams) -> Tensor:
    """Draw uniformly random target tokens, from which refinement starts.

    Args:
        lengths: Number (n,) of tokens of each row.
        vocab_size: Number of tokens, including special tokens, which are not drawn.
        streams: Random streams of the rows. Their counters are advanced.

    Returns:
        Tokens (n, longest) int64, padded with PAD.
    """
    places = torch.arange(int(lengths.max()), device=lengths.device)
    drawn = random_bits(streams.keys[:, None], streams.counters[:, None] + places)
    streams.counters = streams.counters + lengths
    pieces = vocab_size - len(SPECIAL)
    return (drawn % pieces + len(SPECIAL)).masked_fill(places >= lengths[:, None], PAD)
