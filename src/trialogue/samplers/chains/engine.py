"""The engine of chains: many copies as one batch, each with a random stream of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.arrays import whole_tensor
from trialogue.errors import InputError
from trialogue.indices import index_tensor
from trialogue.oracles import Chain, SequenceModel, as_chain, as_model
from trialogue.oracles.whole import every_row, require_valid_output
from trialogue.randomness import Streams
from trialogue.samplers.chains.chain import KERNELS, Advance, advancing
from trialogue.samplers.chains.ergodicity import require_ergodic_chain
from trialogue.samplers.inference_data import inference_data
from trialogue.samplers.prefix.contract.sampler import take
from trialogue.validation import Count, Natural, validated

Predicate = Callable[[Tensor], Tensor]
"""`predicate(tokens (n, N)) -> (n,) bool`"""

_STEPS_AT_ONCE = 256


class Change(NamedTuple):
    """What changed in a run, one entry per site and step in which it did, in the order of the steps.

    All (changes,) int64: the step (1 is the first, burn-in included), the chain, the site, and its new token.
    """

    step: Tensor
    chain: Tensor
    site: Tensor
    token: Tensor


@dataclass(frozen=True)
class ChainRun:
    """What a run of chains returns, in the order of their starts."""

    tokens: Tensor
    """(chains, N) int64: where each chain stands in the end"""
    steps: Tensor
    """(chains,) int64: steps after the burn-in"""
    reached: Tensor
    """(chains,) bool: whether `until` stopped the chain"""
    samples: Tensor
    """(kept, chains, N) int64: where the chains stood after every `thin` steps; none unless `thin` was given"""
    trace: Change | None = None
    energies: Tensor | None = None
    """(kept, chains) float64: energies of the samples, where the chain keeps them (`Chain.energies`)"""
    acceptance: Tensor | None = None
    """(chains,) float64: share of the proposals after the burn-in that were accepted, NaN for a chain that took no
    step; None if the chain always moves, as the heat bath does"""

    def to_inference_data(self) -> Any:
        """Return the samples as ArviZ `InferenceData` (an xarray `DataTree`), for diagnostics and plots of ArviZ.

        The group "posterior" has the variable `tokens` with dimensions (chain, draw, site), and the attribute
        `acceptance` with one rate per chain. The group "sample_stats" has the `energy` of each draw, if the chain keeps
        it.

        Raises:
            InputError: If the run kept no samples, or if the extra `chains` is not installed.

        Example:
            run = run_chain(Metropolis(), model, start=start, steps=1000, thin=10)
            arviz_stats.summary(run.to_inference_data())
        """
        if not len(self.samples):
            raise InputError("samples", 0, "the run kept no samples: give `thin` to `run_chain`")
        stats = {"energy": None if self.energies is None else self.energies.T}
        attrs = {} if self.acceptance is None else {"acceptance": self.acceptance.tolist()}
        return inference_data({"tokens": self.samples.transpose(0, 1)}, stats, {"tokens": ["site"]}, attrs)


class HittingTimes(NamedTuple):
    """How long chains took to reach a set; all by chain."""

    steps: Tensor
    """(chains,) int64: the first step at which the chain was in the set (0: it started there), or the budget"""
    censored: Tensor
    """(chains,) bool: the budget ran out before"""
    tokens: Tensor
    """(chains, N) int64: where the chain stands"""


@validated
def run_chain(
    chain: Chain[Any],
    model: SequenceModel,
    *,
    start: Tensor,
    steps: Count,
    seed: Natural = 0,
    burn_in: Natural = 0,
    thin: Count | None = None,
    until: Predicate | None = None,
    chain_ids: Sequence[int] | Tensor | None = None,
    require_ergodic: bool = True,
    trace: bool = False,
    progress: bool = False,
) -> ChainRun:
    """Run one copy of `chain` on `model` from each row of `start` (chains, N), for `burn_in` and then `steps` steps.

    What a step is, the chain says: one update for random scans, N for sweeps. With `thin` the states after every so
    many steps beyond the burn-in are kept. With `until` a chain stops in the first state, after the burn-in, that
    fulfils the predicate. A chain depends on `seed`, its start and its id (its place, unless `chain_ids` says
    otherwise), not on the other chains. All runs where `start` lies, such as on a GPU: there steps are the same
    whole-tensor operations, with the same uniform numbers (`Ising` models move by `to`; oracles answer where they are
    asked).

    Chains that are not ergodic are refused wherever the states can be listed (`require_ergodic_chain`), unless
    `require_ergodic` is False. Raises `InputError` for that, for a field out of range, for a start outside of the
    model, and where the chain cannot run on the model.
    """
    kind = as_chain(chain)
    start = _checked_start(start, model)
    if thin is not None and thin > steps:
        raise InputError("thin", thin, f"nothing would be kept of {steps} steps: use at most as many")
    if thin is not None and until is not None:
        raise InputError(
            "thin", thin, "chains that stop at their own times keep no common samples: leave it out"
        )
    streams = Streams(seed, _ids(chain_ids, len(start)).to(start.device))
    kept = [] if thin is None else [thin] * (steps // thin)
    with torch.no_grad():
        if (type(chain), type(model)) not in KERNELS:  # compiled steps do not call the model
            require_valid_output(as_model(model), start)
        state = chain.init(model, start)
        if require_ergodic:
            require_ergodic_chain(chain, model, start.shape[1], start.device)
        run = _UnderWay(kind, advancing(chain, model), state, streams, until, trace)
        with tqdm(total=burn_in + steps, unit="step", disable=not progress, leave=False) as bar:
            run.advance(burn_in, bar)
            run.watch()
            samples, energies = run.samples(kept, bar)
            run.advance(steps - sum(kept), bar)
    return ChainRun(
        tokens=run.tokens,
        steps=run.steps - burn_in,
        reached=run.reached,
        samples=torch.stack(samples) if samples else start.new_zeros(0, *start.shape),
        trace=run.changes(),
        energies=energies,
        acceptance=None if run.accepted is None else run.accepted / (run.steps - burn_in),
    )


@validated
def hitting_times(
    chain: Chain[Any],
    model: SequenceModel,
    *,
    start: Tensor,
    target: Predicate,
    budget: Count,
    seed: Natural = 0,
    chain_ids: Sequence[int] | Tensor | None = None,
    require_ergodic: bool = True,
    progress: bool = False,
) -> HittingTimes:
    """How many steps copies of `chain` take from `start` (chains, N) until `target` holds, at most `budget`.

    Raises `InputError` wherever `run_chain` does.
    """
    run = run_chain(
        chain,
        model,
        start=start,
        steps=budget,
        seed=seed,
        until=target,
        chain_ids=chain_ids,
        require_ergodic=require_ergodic,
        progress=progress,
    )
    return HittingTimes(run.steps, ~run.reached, run.tokens)


class _UnderWay:
    """One call of `run_chain`: chains that move, and where all of them stand."""

    def __init__(
        self,
        chain: Chain[Any],
        advance: Advance,
        state: Any,
        streams: Streams,
        until: Predicate | None,
        trace: bool,
    ) -> None:
        self._chain, self._until = chain, until
        self._advance, self._state, self._streams = advance, state, streams
        self.tokens: Tensor = state.tokens.clone()
        self._moving = every_row(self.tokens)
        self.steps = torch.zeros_like(self._moving)
        self.reached = torch.zeros_like(self._moving, dtype=torch.bool)
        self.accepted: Tensor | None = None
        self._watching = False
        self._now = 0
        self._trace: list[Change] | None = [] if trace else None

    def watch(self) -> None:
        """End the burn-in: from now on count accepted proposals, and stop chains where the predicate says so."""
        self.accepted = None
        self._watching = self._until is not None
        self._stop()

    def advance(self, steps: int, bar: "tqdm[Any]") -> Tensor:
        """Take `steps` steps with the chains that still move; return where all chains stand (chains, N)."""
        each = 1 if self._watching or self._trace is not None else _STEPS_AT_ONCE
        while steps:
            count = min(each, steps) if len(self._moving) else steps
            if len(self._moving):
                self._move(count)
            steps -= count
            bar.update(count)
        return self.tokens

    def samples(self, kept: Sequence[int], bar: "tqdm[Any]") -> tuple[list[Tensor], Tensor | None]:
        """Where all chains stand (chains, N) after every number of steps in `kept`, and their energies there."""
        samples, energies = [], []
        for count in kept:
            samples.append(self.advance(count, bar).clone())
            energies.append(self._chain.energies(self._state))
        known = [energy for energy in energies if energy is not None]
        return samples, torch.stack(known) if known else None

    def _move(self, steps: int) -> None:
        before = self._state.tokens
        self._state, accepted = self._advance(self._state, self._streams, steps)
        if accepted is not None:
            if self.accepted is None:
                self.accepted = torch.zeros_like(self.steps, dtype=torch.float64)
            self.accepted[self._moving] += accepted
        self._now += steps
        after = self._state.tokens
        self.tokens[self._moving] = after
        self.steps[self._moving] = self._now
        if self._trace is not None:
            row, site = (before != after).nonzero().unbind(1)
            self._trace.append(
                Change(torch.full_like(row, self._now), self._moving[row], site, after[row, site])
            )
        self._stop()

    def _stop(self) -> None:
        if not self._watching or self._until is None:
            return
        there = torch.as_tensor(self._until(self._state.tokens), device=self.tokens.device)
        if there.shape != (len(self._moving),) or there.dtype != torch.bool:
            raise InputError(
                "until", tuple(there.shape), f"answer with one bool for each of the {len(self._moving)} rows"
            )
        if bool(there.any()):
            self.reached[self._moving[there]] = True
            rest = (~there).nonzero()[:, 0]
            self._moving, self._state = self._moving[rest], take(self._state, rest)
            self._streams.select(rest)

    def changes(self) -> Change | None:
        """Return the trace, where there is one."""
        if self._trace is None:
            return None
        nothing = self.steps.new_zeros(0)
        return Change(*map(torch.cat, zip(*self._trace, Change(*[nothing] * 4), strict=False)))


def _checked_start(start: Tensor, model: SequenceModel) -> Tensor:
    asked = as_model(model)
    vocab, sites, device = int(asked.vocab_size), asked.sites, asked.device
    hint = f"give token ids of shape (chains, {sites or 'N'}), one row for each chain"
    range_hint = f"use tokens below vocab_size={vocab}"
    start = index_tensor("start", start, (None, sites), vocab, shape_hint=hint, range_hint=range_hint)
    if not start.numel():
        raise InputError("start", tuple(start.shape), hint)
    if device not in (None, start.device):
        raise InputError("start", str(start.device), f"the model lies on {device}: move one to the other")
    return start


def _ids(chain_ids: Sequence[int] | Tensor | None, chains: int) -> Tensor:
    if chain_ids is None:
        return torch.arange(chains)
    ids = whole_tensor("chain_ids", chain_ids, f"give {chains} different whole numbers").cpu()
    if ids.shape != (chains,) or len(ids.unique()) < chains or int(ids.min()) < 0:
        raise InputError("chain_ids", ids.tolist(), f"give {chains} different numbers of at least 0")
    return ids
