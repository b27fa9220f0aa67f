"""Faulty samplers with one plausible mistake each. The check of each sampler must detect them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from trialogue.samplers import (
    ActionLevel,
    Ancestral,
    Backtracking,
    BestOfN,
    BlockBestOfN,
    BlockValueGuided,
    MaskedDecoding,
    OutcomeRejection,
    PowerMetropolis,
    Rejection,
    SequentialMonteCarlo,
    StationaryValueGuided,
    TokenwiseRejection,
    ValueGuided,
    WeightedRejection,
)


@dataclass
class Altered:
    """An object with some of its methods replaced. The logarithms of a judge's values follow its replaced values."""

    part: Any
    methods: dict[str, Callable[..., Any]]

    def __getattr__(self, name: str) -> Any:
        linear = name.replace("log_", "")
        if "log_" in name and linear in self.methods:
            return lambda *arguments, **options: self.methods[linear](*arguments, **options).log()
        return self.methods[name] if name in self.methods else getattr(self.part, name)


def support_only(decoding: Any) -> Altered:
    """Return a decoding with equal probabilities for all possible tokens."""

    def log_probs(*arguments: Tensor, **options: bool) -> Tensor:
        log_probs = decoding.log_probs(*arguments, **options)
        return torch.zeros_like(log_probs).masked_fill(log_probs == -math.inf, -math.inf)

    return Altered(decoding, {"log_probs": log_probs})


class _Changed:
    """Change the moves or the state after each step."""

    def step(self, decoding, state, verifier, choose):
        return self.changed(decoding, state, *super().step(decoding, state, verifier, choose))


class _Judged:
    """Take each step with another verifier."""

    def step(self, decoding, state, verifier, choose):
        return super().step(decoding, state, self.judged(decoding, verifier), choose)


class _Uniform:
    """Draw every possible token with the same probability."""

    def step(self, decoding, state, verifier, choose):
        return super().step(support_only(decoding), state, verifier, choose)


class UniformAncestral(_Uniform, Ancestral): ...


class RepeatedCallAncestral(Ancestral):
    def step(self, decoding, state, verifier, choose):
        rows = (~decoding.complete).nonzero()[:, 0]
        if len(rows):
            decoding.log_probs(rows)
        return super().step(decoding, state, verifier, choose)


class CredulousRejection(_Judged, Rejection):
    """Accept every complete sequence."""

    def judged(self, decoding, verifier):
        return Altered(verifier, {"values": lambda rows: torch.ones(len(rows), dtype=torch.float64)})


class HoardingTokenwise(_Changed, TokenwiseRejection):
    """Count the rejections of all positions together."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(rejections=torch.maximum(state.rejections, after.rejections))


class UnweightedMask(MaskedDecoding):
    def step(self, decoding, state, verifier, choose):
        moves, _ = super().step(decoding, state, verifier, choose)
        return moves, state


class BoastfulMask(MaskedDecoding):
    """Report the opposite order of mask and truncation."""

    masks_first = property(lambda self: not self.mask_first)


class UnlimitedBacktracking(_Changed, Backtracking):
    """Never reduce the quota."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(quota=state.quota)


class ForgetfulBacktracking(_Changed, Backtracking):
    """Go back any number of times at the same prefix."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(rejected=torch.full_like(after.rejected, -1))


class UncorrectedCuts(PowerMetropolis):
    """Leave out the ratio of the numbers of possible cuts."""

    def _log_ratios(self, decoding, rows, state, verifier):
        new, old = ((decoding.lengths - decoding.start)[which].double() for which in (rows, rows - 1))
        return super()._log_ratios(decoding, rows, state, verifier) - (old / new).log()


class ShortProposals(PowerMetropolis):
    """End proposals at the length of the current text."""

    def _ends(self, decoding, state):
        return torch.where(self._lengthens(state), state.end, decoding.lengths.roll(1))


class _Contrary(_Judged):
    """Take the worst candidate."""

    def judged(self, decoding, verifier):
        return Altered(verifier, {"values": lambda rows: -verifier.values(rows)})


class WorstOfN(_Contrary, BestOfN): ...


class EarlyScoringBlocks(BlockBestOfN):
    """Score and select as soon as one candidate of the group has ended its block."""

    def _has_block_ended(self, decoding, tokens):
        ended = super()._has_block_ended(decoding, tokens)
        return ended.view(-1, self.candidates).any(1).repeat_interleave(self.candidates)


class EndlessFirstBlock(BlockBestOfN):
    """Select only at the end of the first block."""

    def _has_block_ended(self, decoding, tokens):
        return super()._has_block_ended(decoding, tokens) & (tokens == decoding.lengths - decoding.start)


class DraggedMonteCarlo(_Changed, SequentialMonteCarlo):
    """Add the weight of the source's next token instead of the row's own."""

    def changed(self, decoding, state, moves, after):
        member = moves.source.view(-1, self.particles) % self.particles
        own = after.drawn.view(-1, self.particles, self.particles)
        dragged = own.gather(2, member[:, None].expand_as(own))
        return moves, after._replace(drawn=dragged.reshape(after.drawn.shape))


class OwnPrefixMonteCarlo(SequentialMonteCarlo):
    """Draw after the row's own prefix instead of its source's."""

    def _draw(self, decoding, prefixes, rows, outlook, verifier, choose):
        return super()._draw(decoding, rows, rows, outlook, verifier, choose)


class FirstParticleMonteCarlo(_Changed, SequentialMonteCarlo):
    """Return the first particle instead of one drawn by weight."""

    def changed(self, decoding, state, moves, after):
        rows = torch.arange(len(moves.source))
        first = torch.where(moves.done, rows // self.particles * self.particles, moves.source)
        length = torch.where(moves.done, decoding.lengths[first], moves.length)
        return moves._replace(source=first, length=length), after


class SumWeightMonteCarlo(_Changed, SequentialMonteCarlo):
    """Return the sum of the weights instead of their mean."""

    def changed(self, decoding, state, moves, after):
        more = torch.where(moves.done, math.log(self.particles), 0.0)
        return moves, after._replace(log_weight=after.log_weight + more)


class UniformWeightedRejection(_Uniform, WeightedRejection): ...


class UnvaluedRejection(_Judged, WeightedRejection):
    """Omit the value of the sequence from its weight."""

    def judged(self, decoding, verifier):
        return Altered(verifier, {"candidates": lambda *where: (verifier.candidates(*where) > 0).double()})


class HalfParentGuided(_Judged, ValueGuided):
    """Move up with half of the weight."""

    def judged(self, decoding, verifier):
        return Altered(verifier, {"values": lambda rows: verifier.values(rows) / 2})


class BlindChildrenGuided(_Judged, ValueGuided):
    """Move down by the oracle alone."""

    def judged(self, decoding, verifier):
        return Altered(verifier, {"children": lambda rows, support: support.double()})


class StraightRejection(Rejection):
    """Report incorrectly that the sampler never goes back."""

    goes_back = False


class StraightGuided(ValueGuided):
    goes_back = False


class HurriedStationary(StationaryValueGuided):
    """Never wait."""

    def step(self, decoding, state, verifier, choose):
        return StationaryValueGuided.step(replace(self, lazy=False), decoding, state, verifier, choose)


class ForgetfulMomentum(_Changed, ValueGuided):
    """Forget the current direction."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(up=torch.zeros_like(after.up))


class CreditingRejection(OutcomeRejection):
    """Accept a complete sequence with the square root of its value."""

    def _is_accepted(self, rows, verifier, choose):
        credited = Altered(verifier, {"values": lambda rows: verifier.values(rows).sqrt()})
        return super()._is_accepted(rows, credited, choose)


class WeightlessActionLevel(_Judged, ActionLevel):
    """Use the weights of masked decoding with verdicts."""

    def judged(self, decoding, verifier):
        return Altered(verifier, {"values": lambda rows: torch.ones(len(rows), dtype=torch.float64)})


class FirstCandidateGuided(_Changed, BlockValueGuided):
    """Move down to the first candidate instead of the chosen one."""

    def changed(self, decoding, state, moves, after):
        own = torch.arange(len(moves.source))
        first = own - own % self.candidates
        same = decoding.lengths[moves.source] == decoding.lengths[first]
        return moves._replace(source=torch.where((moves.source != own) & same, first, moves.source)), after


WRONG_DISTRIBUTIONS = [
    UniformAncestral(),
    RepeatedCallAncestral(),
    CredulousRejection(),
    CreditingRejection(),
    HoardingTokenwise(2),
    UnweightedMask(),
    UnlimitedBacktracking(1, 1),
    ForgetfulBacktracking.released(3, 1, once_per_prefix=True),
    WorstOfN(2),
    EarlyScoringBlocks(2, (0,)),
    EndlessFirstBlock(2, block_tokens=1),
    SumWeightMonteCarlo(2, 1.0),
    FirstParticleMonteCarlo(2),
    DraggedMonteCarlo(2, 1.0, "rejection"),
    OwnPrefixMonteCarlo(2, 1.0, "mask"),
    UniformWeightedRejection(),
    UnvaluedRejection(),
    HalfParentGuided(),
    BlindChildrenGuided(),
    ForgetfulMomentum(momentum=1.0),
    HurriedStationary(steps=6, node="last", tries=2),
    WeightlessActionLevel(),
    FirstCandidateGuided(2, 1),
    UncorrectedCuts(2.0, 2),
    ShortProposals(2.0, 2),
]
"""Faulty samplers with another exact distribution, other weights or other expected calls."""
