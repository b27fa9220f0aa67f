"""Translation by iterative refinement: the likeliest lengths of a target, refined side by side."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from trialogue.data.parallel.vocabulary import PAD, SPECIAL
from trialogue.models.encoder_decoder.refiner import RefinedRows, Refiner
from trialogue.randomness import Streams, numbers_of_64_bits
from trialogue.samplers.chains.refinement import Refined, Refinement
from trialogue.samplers.translation.hypotheses import NOTHING, Alpha, Translation, ranked
from trialogue.validation import Count, InstanceOf, Natural, Several, validated


@validated
@dataclass(frozen=True)
class LengthBeam:
    """How a source is translated: by `steps` of a chain from each of the `hypotheses` likeliest lengths.

    Candidates are ranked by the sum of the log-probabilities that the last step gave their tokens, over
    ((5 + length) / 6)^`alpha`. `drop_repeats` leaves out each token of a candidate that equals the one before it. A
    candidate that a step by argmax left as it was takes no further part. Raises `InputError` for fields out of range.
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
        """Translations of `sources`, tokens without EOS, evaluated side by side; empty ones of empty sources.

        Each draws as its number of `numbers`, by default its place, under `seed`, whatever it is beside. Raises
        `InputError` where a source is too long for the model.
        """
        told = [place for place, source in enumerate(sources) if len(source)]
        answers = [NOTHING] * len(sources)
        if not told:
            return answers
        with torch.inference_mode():
            model, distributions = refiner.condition_each([sources[place] for place in told])
            lengths = likeliest_lengths(distributions, self.hypotheses)
            named = told if numbers is None else [numbers[place] for place in told]
            found = self._refined(model, lengths, torch.tensor(named), seed)
        for place, translation in zip(told, found, strict=True):
            answers[place] = translation
        return answers

    def _refined(self, model: RefinedRows, lengths: Tensor, numbers: Tensor, seed: int) -> list[Translation]:
        """Translations of every source, by candidates of the `lengths` (sources, beams)."""
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
        answers = []
        for start in range(0, len(ids), beams):
            held = range(start, start + beams)
            candidates = [(tokens[row][: counts[row]], sums[row]) for row in held]
            best = ranked(candidates, self.alpha, self.drop_repeats)
            answers.append(Translation(best, max(passes[row] for row in held)))
        return answers


class _Beams:
    """Candidates under way: all of them, and those that are still asked about."""

    def __init__(self, chain: Refinement, model: RefinedRows, state: Refined, streams: Streams) -> None:
        self._chain, self._model, self._state, self._streams = chain, model, state, streams
        self._rows = torch.arange(len(state.tokens), device=state.tokens.device)
        self._changing = torch.ones_like(self._rows, dtype=torch.bool)
        self.ended = state
        self.passes = torch.zeros_like(self._rows)

    def step(self) -> bool:
        """Take one step; whether another one may change any of them."""
        before = self._state
        after, _ = self._chain.step(self._model, before, self._streams.choose)
        self._state = after
        self.passes[self._rows] += self._changing
        if len(self._rows) == len(self.passes):
            self.ended = after
        else:
            parts = zip(self.ended, after, strict=True)
            self.ended = Refined(*(whole.index_copy(0, self._rows, part) for whole, part in parts))
        if self._chain.keep == "confident":
            self._changing = after.masked.any(1)
        elif self._chain.choice == "argmax":
            self._changing = self._changing & ((after.tokens != before.tokens).any(1) | before.masked.any(1))
        left = int(self._changing.sum())
        # Choosing rows copies what they read of their sources, which pays where few are left.
        if left and 2 * left <= len(self._rows):
            kept = self._changing.nonzero()[:, 0]
            self._rows, self._model = self._rows[kept], self._model.rows(kept)
            self._changing, self._state = self._changing[kept], Refined(*(part[kept] for part in after))
            self._streams = self._streams.of(kept)
        return left > 0


def likeliest_lengths(distributions: Tensor, count: int) -> Tensor:
    """The `count` likeliest lengths (n, count) of at least 1 by `distributions` (n, lengths), all where there are
    fewer.
    """
    return distributions[:, 1:].topk(min(count, distributions.shape[1] - 1), 1).indices + 1


def random_targets(lengths: Tensor, vocab_size: int, streams: Streams) -> Tensor:
    """Pieces (n, N) drawn uniformly, row i from stream i, `lengths` (n,) of them and PAD behind."""
    places = torch.arange(int(lengths.max()), device=lengths.device)
    drawn = numbers_of_64_bits(streams.keys[:, None], streams.counters[:, None] + places)
    streams.counters = streams.counters + lengths
    pieces = vocab_size - len(SPECIAL)
    return (drawn % pieces + len(SPECIAL)).masked_fill(places >= lengths[:, None], PAD)
