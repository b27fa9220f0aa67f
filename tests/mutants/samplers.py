"""Faulty samplers with one plausible mistake each. The check of each sampler must detect them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from trialogue.samplers import (
    ActionLevel,
    AdaptiveRejection,
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
from trialogue.samplers.prefix import (
    adaptive_rejection,
    rejection_draws,
    sequential_monte_carlo,
    value_guided,
    weighted_rejection,
)
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.objects import ObjectColumn


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


class EarlyCheckingRejection(Rejection):
    """Reject prefixes too, which reduces the queries but keeps the distribution under a perfect verifier."""

    def step(self, decoding, state, verifier, choose):
        moves = Moves.stay(decoding)
        accepted = verifier.values(torch.arange(len(decoding.lengths))) > 0
        moves.done.copy_(decoding.complete & accepted)
        moves.length.copy_(torch.where(accepted, decoding.lengths, decoding.start))
        active = (~moves.done).nonzero()[:, 0]
        if len(active):
            moves.token[active] = choose(decoding.log_probs(active, moves.length[active]), active)
        return moves, state


def sparing_the_last(decoding: Any, verifier: Any) -> Altered:
    """Return a verifier that accepts every token that completes the sequence."""
    complete = decoding.complete

    def values(rows: Tensor) -> Tensor:
        return torch.where(complete[rows], 1.0, verifier.values(rows))

    def leading_children(rows: Tensor, log_probs: Tensor, *, verdicts: bool = False) -> Tensor:
        support = log_probs > -math.inf
        last = decoding.lengths[rows] == decoding.limit[rows] - 1
        return torch.where(last[:, None], support.double(), verifier.children(rows, support))

    return Altered(verifier, {"values": values, "leading_children": leading_children})


class LastUncheckedMask(MaskedDecoding):
    def step(self, decoding, state, verifier, choose):
        return super().step(decoding, state, sparing_the_last(decoding, verifier), choose)


class FirstVisitMask(AdaptiveRejection):
    """Mask the tokens of a prefix already at its first visit."""

    def step(self, decoding, state, verifier, choose):
        empty = rejection_draws.RejectionTable(0.0, {})
        table = rejection_draws._table
        # With this tolerance, no attempt ends because the mask leaves less than the table of `empty`.
        with (
            patch.object(rejection_draws, "_table", lambda *place: table(*place) or empty),
            patch.object(rejection_draws, "_TOLERANCE", 1.0),
        ):
            return super().step(decoding, state, verifier, choose)


class AfterwardsWeighted(AdaptiveRejection):
    """Weigh an accepted sequence by the open mass after its attempt, which also has its masks."""

    def step(self, decoding, state, verifier, choose):
        moves, after = super().step(decoding, state, verifier, choose)
        log_weight = after.log_weight.clone()
        for row, visit in enumerate(state.visit.items):
            if bool(moves.done[row]) and visit is not None and log_weight[row] > -math.inf:
                log_weight[row] = state.log_weight[row] + after.table.items[row].log_open
        return moves, after._replace(log_weight=log_weight)


class FallbacksWeighted(AdaptiveRejection):
    """Give sequences that are accepted in an attempt the weight zero."""

    def step(self, decoding, state, verifier, choose):
        moves, after = super().step(decoding, state, verifier, choose)
        accepted = moves.done & torch.tensor([visit is not None for visit in state.visit.items])
        return moves, after._replace(log_weight=after.log_weight.masked_fill(accepted, -math.inf))


class UnweightedFallback(AdaptiveRejection):
    """Do not weigh the sequences of masked decoding."""

    def step(self, decoding, state, verifier, choose):
        moves, after = super().step(decoding, state, verifier, choose)
        fallen = state.attempts >= self.max_attempts
        return moves, after._replace(
            log_weight=torch.where(
                fallen & (after.log_weight > -math.inf), state.log_weight, after.log_weight
            )
        )


class MaskFirstFallback(AdaptiveRejection):
    """Apply the mask before top-k and top-p in masked decoding."""

    def step(self, decoding, state, verifier, choose):
        with patch.object(adaptive_rejection, "_FALLBACK", MaskedDecoding()):
            return super().step(decoding, state, verifier, choose)


class StayingRejection(AdaptiveRejection):
    """Continue an attempt after a rejected token from the prefix before it."""

    def step(self, decoding, state, verifier, choose):
        moves, after = super().step(decoding, state, verifier, choose)
        visits = list(after.visit.items)
        for row, table in enumerate(after.table.items):
            last = state.visit.items[row]
            if table is state.table.items[row] or bool(moves.done[row]) or last is None:
                continue
            refused = int(last.is_allowed is None)
            moves.length[row] = decoding.lengths[row] - refused
            chain, visit = [], None
            while last is not None:
                chain.append(last)
                last = last.before
            for one in chain[::-1][: len(chain) - refused]:
                visit = one._replace(before=visit, table=table)
                table = table.child(one.token)
            visits[row] = visit
        return moves, after._replace(visit=ObjectColumn(visits))


class HoardingTokenwise(_Changed, TokenwiseRejection):
    """Count the rejections of all positions together."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(rejections=torch.maximum(state.rejections, after.rejections))


class PatientTokenwise(TokenwiseRejection):
    """Allow one draw too many."""

    def step(self, decoding, state, verifier, choose):
        patient = TokenwiseRejection(max_rejections=self.max_rejections + 1)
        return patient.step(decoding, state, verifier, choose)


class UnweightedMask(MaskedDecoding):
    def step(self, decoding, state, verifier, choose):
        moves, _ = super().step(decoding, state, verifier, choose)
        return moves, state


class InverseWeightMask(_Changed, MaskedDecoding):
    """Use the ratio of proposal to target instead of target to proposal."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(log_weight=2 * state.log_weight - after.log_weight)


class BoastfulMask(MaskedDecoding):
    """Report the opposite order of mask and truncation."""

    masks_first = property(lambda self: not self.mask_first)


class UncutMonteCarlo(SequentialMonteCarlo):
    """Weight by the mass after the mask, although top-k and top-p remove part of it."""

    def _evaluate_particles(self, decoding, verifier, alive):
        outlook = super()._evaluate_particles(decoding, verifier, alive)
        active = (alive & ~decoding.complete).nonzero()[:, 0]
        log_probs = decoding.log_probs(active, cut=False).double()
        whole = log_probs + verifier.children(active, log_probs > -math.inf).log()
        return outlook._replace(log_value=outlook.log_value.index_copy(0, active, whole.logsumexp(1)))


class UnlimitedBacktracking(_Changed, Backtracking):
    """Never reduce the quota."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(quota=state.quota)


class ShortStrideBacktracking(Backtracking):
    def step(self, decoding, state, verifier, choose):
        shorter = Backtracking(self.quota, max(1, self.stride - 1), self.argmax_redo, self.erase_prompt)
        return shorter.step(decoding, state, verifier, choose)


class ShortRedoBacktracking(_Changed, Backtracking):
    """Redo fewer tokens than Algorithm 1."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(redo=(after.redo - 1).clamp_min(0))


class RedoVerifyingBacktracking(Backtracking):
    """CachedVerifier redone tokens too."""

    def step(self, decoding, state, verifier, choose):
        judged = state._replace(sampled=decoding.lengths > decoding.start)
        return super().step(decoding, judged, verifier, choose)


class PromptErasingBacktracking(Backtracking):
    """Invert the setting of whether the prompt may be erased."""

    def step(self, decoding, state, verifier, choose):
        contrary = replace(self, erase_prompt=not self.erase_prompt)
        return Backtracking.step(contrary, decoding, state, verifier, choose)


class HighestTieBacktracking(Backtracking):
    """Redo the highest index among equally probable tokens."""

    def step(self, decoding, state, verifier, choose):
        def log_probs(*arguments: Tensor) -> Tensor:
            log_probs = decoding.log_probs(*arguments)
            return log_probs + 1e-12 * torch.arange(log_probs.shape[1])

        return super().step(Altered(decoding, {"log_probs": log_probs}), state, verifier, choose)


class StrideRedoBacktracking(Backtracking):
    """Report the released redo, but redo as printed in the thesis."""

    def step(self, decoding, state, verifier, choose):
        return Backtracking.step(replace(self, redo="stride"), decoding, state, verifier, choose)


class CountingStridesBacktracking(_Changed, Backtracking):
    """Accumulate the full stride even if fewer tokens were erased."""

    def changed(self, decoding, state, moves, after):
        back = (after.quota < state.quota).long()
        return moves, after._replace(redo=state.redo + self.stride * back)


class ForgetfulBacktracking(_Changed, Backtracking):
    """Go back any number of times at the same prefix."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(rejected=torch.full_like(after.rejected, -1))


class AbsoluteRedoBacktracking(Backtracking):
    """Count greedy positions from the start of the prompt."""

    def step(self, decoding, state, verifier, choose):
        absolute = Altered(decoding, {"start": torch.zeros_like(decoding.start)})
        if self.erase_prompt:
            return super().step(absolute, state, verifier, choose)
        return super().step(decoding, state, verifier, choose)


class UncorrectedCuts(PowerMetropolis):
    """Leave out the ratio of the numbers of possible cuts."""

    def _log_ratios(self, decoding, rows, state, verifier):
        new, old = ((decoding.lengths - decoding.start)[which].double() for which in (rows, rows - 1))
        return super()._log_ratios(decoding, rows, state, verifier) - (old / new).log()


class ShortProposals(PowerMetropolis):
    """End proposals at the length of the current text."""

    def _ends(self, decoding, state):
        return torch.where(self._lengthens(state), state.end, decoding.lengths.roll(1))


class TruncatedComparison(PowerMetropolis):
    """Compare a shorter proposal with as many tokens of the current text."""

    def _log_ratios(self, decoding, rows, state, verifier):
        beyond = torch.arange(state.log_p.shape[1]) >= decoding.lengths.roll(-1)[:, None]
        cut = state._replace(
            log_p=state.log_p.masked_fill(beyond, 0.0), log_q=state.log_q.masked_fill(beyond, 0.0)
        )
        cut.log_p[1::2], cut.log_q[1::2] = state.log_p[1::2], state.log_q[1::2]
        return super()._log_ratios(decoding, rows, cut, verifier)


class UnvaluedMetropolis(_Judged, PowerMetropolis):
    """Give every output the same value."""

    def judged(self, decoding, verifier):
        return Altered(verifier, {"values": lambda rows: torch.ones(len(rows), dtype=torch.float64)})


class CarefulMetropolis(PowerMetropolis):
    """Compare the first text of a block with the text that it lengthens."""

    def _lengthens(self, state):
        return (state.proposals % (self.num_steps + 1) == 0) & (state.proposals == 0)


class _Last:
    """Take the last of the candidates with the largest value."""

    def step(self, decoding, state, verifier, choose):
        n = self.candidates
        later = Altered(verifier, {"values": lambda rows: verifier.values(rows) + 1e-12 * (rows % n)})
        return super().step(decoding, state, later, choose)


class _Indifferent(_Judged):
    """Take the first candidate instead of the best one."""

    def judged(self, decoding, verifier):
        return Altered(verifier, {"values": lambda rows: torch.zeros(len(rows))})


class _Contrary(_Judged):
    """Take the worst candidate."""

    def judged(self, decoding, verifier):
        return Altered(verifier, {"values": lambda rows: -verifier.values(rows)})


class LastBestOfN(_Last, BestOfN): ...


class LastCandidateBlocks(_Last, BlockBestOfN): ...


class IndifferentBestOfN(_Indifferent, BestOfN): ...


class FirstCandidateBlocks(_Indifferent, BlockBestOfN): ...


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


class ShortLineBlocks(BlockBestOfN):
    """End a block at every delimiter, even if the block is too short."""

    def step(self, decoding, state, verifier, choose):
        return BlockBestOfN.step(replace(self, min_tokens=1), decoding, state, verifier, choose)


class ForgetfulMonteCarlo(SequentialMonteCarlo):
    """Do not divide by the value of the prefix after resampling."""

    def step(self, decoding, state, verifier, choose):
        moves, after = super().step(decoding, state, verifier, choose)
        changed, log_value = self.reweighed(decoding, state, verifier, after)
        weight = torch.where(changed & ~moves.done, after.log_weight + log_value, after.log_weight)
        return moves, after._replace(log_weight=weight)

    def reweighed(self, decoding, state, verifier, after):
        """Return the rows (rows,) with changed weights and the logarithms (rows,) of their values."""
        before = state.log_weight
        if self.proposal != "oracle":
            member = torch.arange(len(state.log_weight)) % self.particles
            before = before + state.drawn.gather(1, member[:, None])[:, 0]
        changed = (after.log_weight != before) & (after.log_weight > -math.inf)
        return changed, self._evaluate_particles(decoding, verifier, before > -math.inf).log_value


class LosingMeanMonteCarlo(ForgetfulMonteCarlo):
    """Omit the mean weight after resampling."""

    def step(self, decoding, state, verifier, choose):
        moves, after = SequentialMonteCarlo.step(self, decoding, state, verifier, choose)
        changed, log_value = self.reweighed(decoding, state, verifier, after)
        fresh = torch.where(moves.done, 0.0, -log_value)
        return moves, after._replace(log_weight=torch.where(changed, fresh, after.log_weight))


class DraggedMonteCarlo(_Changed, SequentialMonteCarlo):
    """Add the weight of the source's next token instead of the row's own."""

    def changed(self, decoding, state, moves, after):
        member = moves.source.view(-1, self.particles) % self.particles
        own = after.drawn.view(-1, self.particles, self.particles)
        dragged = own.gather(2, member[:, None].expand_as(own))
        return moves, after._replace(drawn=dragged.reshape(after.drawn.shape))


class UnweighedDrawMonteCarlo(_Changed, SequentialMonteCarlo):
    """Omit the weight of the sampled token."""

    def changed(self, decoding, state, moves, after):
        dead = after.drawn == -math.inf
        return moves, after._replace(drawn=torch.where(dead, after.drawn, 0.0))


class OwnPrefixMonteCarlo(SequentialMonteCarlo):
    """Draw after the row's own prefix instead of its source's."""

    def _draw(self, decoding, prefixes, rows, outlook, verifier, choose):
        return super()._draw(decoding, rows, rows, outlook, verifier, choose)


class CountingMonteCarlo(SequentialMonteCarlo):
    """Estimate the accepted mass by 1 / (K + 1)."""

    def step(self, decoding, state, verifier, choose):
        with patch.object(sequential_monte_carlo, "draw_accepted", BrokenDraw(counting=True)):
            return super().step(decoding, state, verifier, choose)


class MiddleMonteCarlo(SequentialMonteCarlo):
    """Resample systematically without a random number."""

    def _draw_ancestors(self, log_weights, rows, choose):
        bounds = self.particles * log_weights.softmax(1).cumsum(1)
        return torch.searchsorted(bounds, (torch.arange(self.particles) + 0.5).expand_as(bounds).contiguous())


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


@dataclass(frozen=True)
class BrokenDraw:
    """A second implementation of `draw_accepted` with optional mistakes.

    Attributes:
        counting: Estimate by 1 / (K + 1), as if rejected tokens were drawn again.
        first_loop: Estimate from the rejections before the first acceptance.
        replacing: Draw with replacement in the second loop.
        late: Omit the term of no rejection if another term exists.
    """

    counting: bool = False
    first_loop: bool = False
    replacing: bool = False
    late: bool = False

    def __call__(self, log_probs, prefixes, rows, verifier, choose):
        left, token = log_probs.exp(), torch.full_like(rows, -1)
        log_value = torch.zeros(len(rows), dtype=torch.float64)
        total = 1 / left.sum(1)
        first, extra, rejections = total.clone(), torch.zeros_like(total), torch.zeros_like(total)
        drawing = torch.arange(len(rows))
        while len(drawing):
            drawn = choose(left[drawing].log(), rows[drawing])
            values = verifier.candidates(prefixes[drawing], drawn)
            yes = values > 0
            begun = token[drawing] >= 0
            no = drawing[~yes]
            left[no, drawn[~yes]] = 0
            extra[no] += 1 / left[no].sum(1)
            rejections[no] += 1
            accepted = drawing[yes & ~begun]
            token[accepted] = drawn[yes & ~begun]
            log_value[accepted] = values[yes & ~begun].log()
            if self.replacing:
                left[accepted] = log_probs[accepted].exp()
            ended = (yes & (begun | self.first_loop)) | (left[drawing].sum(1) == 0)
            drawing = drawing[~ended]
        terms = torch.where(rejections > 0, extra + (0 if self.late else first), first)
        estimate = 1 / (rejections + 1) if self.counting else 1 / terms
        log_mass = torch.where(token < 0, 0, estimate).log()
        return weighted_rejection.Draw(token, log_mass, log_value)


class CountingRejection(WeightedRejection):
    _draw = BrokenDraw(counting=True)

    def step(self, decoding, state, verifier, choose):
        with patch.object(weighted_rejection, "draw_accepted", self._draw):
            return super().step(decoding, state, verifier, choose)


class FirstLoopRejection(CountingRejection):
    _draw = BrokenDraw(first_loop=True)


class ReplacingRejection(CountingRejection):
    _draw = BrokenDraw(replacing=True)


class LateCountingRejection(CountingRejection):
    _draw = BrokenDraw(late=True)


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


class UniformGuided(ValueGuided):
    """Move down by the values alone."""

    def step(self, decoding, state, verifier, choose):
        return super().step(support_only(decoding), state, verifier, choose)


class StraightRejection(Rejection):
    """Report incorrectly that the sampler never goes back."""

    goes_back = False


class StraightTokenwise(TokenwiseRejection):
    goes_back = False


class StraightBestOfN(BestOfN):
    goes_back = False


class StraightGuided(ValueGuided):
    goes_back = False


class HurriedStationary(StationaryValueGuided):
    """Never wait."""

    def step(self, decoding, state, verifier, choose):
        return StationaryValueGuided.step(replace(self, lazy=False), decoding, state, verifier, choose)


class OutcomelessGuided(ValueGuided):
    """Use the value of the parent instead of the outcome of a leaf."""

    def step(self, decoding, state, verifier, choose):
        def values(rows):
            complete = decoding.complete[rows]
            return torch.where(complete, 1.0, verifier.values(rows))

        def children(rows, support):
            found = verifier.children(rows, support)
            last = decoding.lengths[rows] + 1 >= decoding.limit[rows]
            return torch.where(last[:, None], support.double(), found)

        blind = Altered(verifier, {"values": values, "children": children})
        return super().step(decoding, state, blind, choose)


class RenormalisedCandidates(ValueGuided):
    """Normalise the weights of the candidates."""

    def step(self, decoding, state, verifier, choose):
        def weigh_children(decoding, rows, verifier, cut):
            children = right(decoding, rows, verifier, cut)
            distributions = right(
                decoding, rows, Altered(verifier, {"leading_children": verdicts(verifier)}), cut
            )
            return children._replace(
                log_weights=children.log_weights - distributions.log_weights.logsumexp(1, keepdim=True)
            )

        right = value_guided.weigh_children
        with patch.object(value_guided, "weigh_children", weigh_children):
            return super().step(decoding, state, verifier, choose)


def verdicts(verifier):
    def leading_children(*arguments, **options):
        return (verifier.leading_children(*arguments, **options) > 0).double()

    return leading_children


class LateCandidates(ValueGuided):
    """Take the most probable tokens as candidates, even if they are rejected."""

    def step(self, decoding, state, verifier, choose):
        def leading_children(asked, distributions, *, cut, **_):
            return verifier.children(asked, cut(distributions) > -math.inf)

        return super().step(
            decoding, state, Altered(verifier, {"leading_children": leading_children}), choose
        )


class DoublingMomentum(ValueGuided):
    """Double the weights in the current direction."""

    def _apply_momentum(self, parent, children, up):
        up = up[:, None]
        return torch.where(up, parent + math.log(2), parent), torch.where(
            up, children, children + math.log(2)
        )


class OneWayMomentum(ValueGuided):
    """Resist turning only on the way down."""

    def _apply_momentum(self, parent, children, up):
        lifted, _ = super()._apply_momentum(parent, children, up)
        return lifted, children


class ForgetfulMomentum(_Changed, ValueGuided):
    """Forget the current direction."""

    def changed(self, decoding, state, moves, after):
        return moves, after._replace(up=torch.zeros_like(after.up))


class EarlyStationary(_Changed, StationaryValueGuided):
    """Restart with the remaining steps."""

    def changed(self, decoding, state, moves, after):
        again = (after.steps < 0) & (state.steps == 0)
        return moves, after._replace(steps=torch.where(again, 1, after.steps))


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
    EarlyCheckingRejection(),
    CreditingRejection(),
    LastUncheckedMask(),
    HoardingTokenwise(2),
    PatientTokenwise(2),
    UnweightedMask(),
    InverseWeightMask(),
    UnlimitedBacktracking(1, 1),
    ShortStrideBacktracking(1, 2),
    ShortRedoBacktracking(1, 2),
    RedoVerifyingBacktracking(2, 2),
    StrideRedoBacktracking.released(3, 1),
    CountingStridesBacktracking.released(3, 2),
    ForgetfulBacktracking.released(3, 1, once_per_prefix=True),
    IndifferentBestOfN(2),
    WorstOfN(2),
    EarlyScoringBlocks(2, (0,)),
    FirstCandidateBlocks(2, block_tokens=2),
    EndlessFirstBlock(2, block_tokens=1),
    ShortLineBlocks(2, (0,), min_tokens=2),
    ForgetfulMonteCarlo(2, 1.0),
    ForgetfulMonteCarlo(2, 1.0, "mask"),
    LosingMeanMonteCarlo(2, 1.0),
    LosingMeanMonteCarlo(2, 1.0, "rejection"),
    SumWeightMonteCarlo(2, 1.0),
    FirstParticleMonteCarlo(2),
    DraggedMonteCarlo(2, 1.0, "mask"),
    DraggedMonteCarlo(2, 1.0, "rejection"),
    UnweighedDrawMonteCarlo(2, 1.0, "mask"),
    UnweighedDrawMonteCarlo(2, 1.0, "rejection"),
    OwnPrefixMonteCarlo(2, 1.0, "mask"),
    CountingMonteCarlo(2, 1.0, "rejection"),
    MiddleMonteCarlo(2, 1.0, resampling="systematic"),
    CountingRejection(),
    FirstLoopRejection(),
    ReplacingRejection(),
    LateCountingRejection(),
    UniformWeightedRejection(),
    UnvaluedRejection(),
    HalfParentGuided(),
    BlindChildrenGuided(),
    UniformGuided(),
    OutcomelessGuided(),
    DoublingMomentum(momentum=1.0),
    OneWayMomentum(momentum=1.0),
    ForgetfulMomentum(momentum=1.0),
    HurriedStationary(steps=6, node="last", tries=2),
    EarlyStationary(steps=6, node="last", tries=2),
    WeightlessActionLevel(),
    FirstCandidateGuided(2, 1),
    UncorrectedCuts(2.0, 2),
    ShortProposals(2.0, 2),
    TruncatedComparison(2.0, 2, 1, 1.0),
    UnvaluedMetropolis(2.0, 2),
    CarefulMetropolis(2.0, 1, 2),
]
"""Faulty samplers with another exact distribution, other weights or other expected calls."""
