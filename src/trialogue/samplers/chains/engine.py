"""Function `run_chain`, which runs many copies of a Markov chain as one batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.arrays import integer_tensor
from trialogue.errors import InputError
from trialogue.indices import index_tensor
from trialogue.oracles import Chain, SequenceModel, as_chain, as_model
from trialogue.oracles.whole import every_row, require_valid_output
from trialogue.randomness import Streams
from trialogue.samplers.chains.chain import KERNELS, Advance, make_advance_function
from trialogue.samplers.chains.ergodicity import require_ergodic_chain
from trialogue.samplers.inference_data import inference_data
from trialogue.samplers.prefix.contract.sampler import select_rows
from trialogue.validation import Count, Natural, validated

Predicate = Callable[[Tensor], Tensor]
"""Function from tokens (n, N) to (n,) bool."""

_STEPS_AT_ONCE = 256


class Change(NamedTuple):
    """Record of every site (position) whose token changed during a run of chains.

    There is one entry per changed site and step, ordered by step.

    Attributes:
        step: Step (changes,) int64. The first step is 1 and includes the burn-in.
        chain: Index (changes,) int64 of the chain.
        site: Index (changes,) int64 of the site.
        token: New token (changes,) int64 of the site.
    """

    step: Tensor
    chain: Tensor
    site: Tensor
    token: Tensor


@dataclass(frozen=True)
class ChainRun:
    """Result of a run of chains, in the order of their starts.

    Args:
        tokens: Final tokens (chains, N) int64.
        steps: Number of steps (chains,) int64 after the burn-in.
        reached: Whether `until` stopped each chain (chains,) bool.
        samples: Tokens (kept, chains, N) int64 after every `thin` steps. Empty unless `thin` was given.
        trace: The changes of sites, if they were requested.
        energies: Energies (kept, chains) float64 of the samples. None if the chain does not store them.
        acceptance: Share (chains,) float64 of accepted proposals after the burn-in, NaN for a chain without steps. None
            if the chain makes no proposals, like the heat bath.
    """

    tokens: Tensor
    steps: Tensor
    reached: Tensor
    samples: Tensor
    trace: Change | None = None
    energies: Tensor | None = None
    acceptance: Tensor | None = None

    def to_inference_data(self) -> Any:
        """Return the samples as ArviZ `InferenceData` (an xarray `DataTree`), for diagnostics and plots of ArviZ.

        The group "posterior" has the variable `tokens` with dimensions (chain, draw, site), and the attribute
        `acceptance` with one rate per chain. The group "sample_stats" has the `energy` of each draw, if the chain
        stores it.

        Raises:
            InputError: If the run has no samples, or if the extra `chains` is not installed.

        Example:
            run = run_chain(Metropolis(), model, start=start, steps=1000, thin=10)
            arviz_stats.summary(run.to_inference_data())
        """
        if not len(self.samples):
            raise InputError("samples", 0, "pass `thin` to `run_chain` to store samples")
        stats = {"energy": None if self.energies is None else self.energies.T}
        attrs = {} if self.acceptance is None else {"acceptance": self.acceptance.tolist()}
        return inference_data({"tokens": self.samples.transpose(0, 1)}, stats, {"tokens": ["site"]}, attrs)


class HittingTimes(NamedTuple):
    """Number of steps that chains took to reach a set of states.

    Attributes:
        steps: First step (chains,) int64 in the set, 0 if the chain started there, or the largest number of steps if it
            did not reach the set.
        censored: Whether each chain (chains,) bool did not reach the set within the largest number of steps.
        tokens: Final tokens (chains, N) int64.
    """

    steps: Tensor
    censored: Tensor
    tokens: Tensor


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
    """Run one copy of a Markov chain from each start.

    Each chain is determined by `seed`, its start and its id, independently of other chains. The chains run on
    the device of `start`.

    Args:
        chain: The chain. A step is one update for random scans, and N updates for sweeps.
        model: The model whose distribution the chain samples.
        start: Start (chains, N) int64 of each copy.
        steps: Number of steps after the burn-in.
        seed: Seed of the random streams (default: 0).
        burn_in: Number of steps before samples are stored (default: 0).
        thin: Store the state after every `thin` steps (default: store no samples).
        until: Stop a chain in the first state after the burn-in for which this function is True (default:
            never).
        chain_ids: Keys of the random streams, one per chain (default: index of the chain).
        require_ergodic: Raise an error if the chain does not converge to the same distribution from every
            start, provided that the states can be enumerated (default: True).
        trace: Return all changes of sites (default: False).
        progress: Show a progress bar (default: False).

    Returns:
        The final states, and the samples and trace if requested.

    Raises:
        InputError: If an argument is out of range, the chain cannot run on the model, or the chain is not
            ergodic.

    Example:
        >>> import torch
        >>> from trialogue import run_chain
        >>> from trialogue.data import Ising
        >>> from trialogue.samplers import Gibbs
        >>> start = torch.zeros(2, 4, dtype=torch.int64)
        >>> run = run_chain(Gibbs(), Ising.clique(4, 3, 0.4, 0.0), start=start, steps=100)
        >>> run.tokens.shape
        torch.Size([2, 4])
    """
    kind = as_chain(chain)
    start = _validate_start(start, model)
    if thin is not None and thin > steps:
        raise InputError("thin", thin, f"use at most {steps}, the number of steps, to store any sample")
    if thin is not None and until is not None:
        hint = "leave it out with `until`, because the chains then stop at different times"
        raise InputError("thin", thin, hint)
    streams = Streams(seed, _validate_chain_ids(chain_ids, len(start)).to(start.device))
    kept = [] if thin is None else [thin] * (steps // thin)
    with torch.no_grad():
        if (type(chain), type(model)) not in KERNELS:  # compiled steps do not call the model
            require_valid_output(as_model(model), start)
        state = chain.init(model, start)
        if require_ergodic:
            require_ergodic_chain(chain, model, start.shape[1], start.device)
        run = _ActiveRun(kind, make_advance_function(chain, model), state, streams, until, trace)
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
    """Count the steps that copies of a chain take until a condition holds.

    Args:
        chain: The chain.
        model: The model whose distribution the chain samples.
        start: Start (chains, N) int64 of each copy.
        target: The condition, a function from tokens (n, N) to (n,) bool.
        budget: Largest number of steps.
        seed: Seed of the random streams (default: 0).
        chain_ids: Keys of the random streams, one per chain (default: index of the chain).
        require_ergodic: Raise an error if the chain is not ergodic, provided that the states can be enumerated
            (default: True).
        progress: Show a progress bar (default: False).

    Returns:
        The number of steps of each chain.

    Raises:
        InputError: If `run_chain` would raise it.
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


class _ActiveRun:
    """State of a call of `run_chain`: the tokens, random streams and counters of all chains."""

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
        """End the burn-in: from now on, count accepted proposals and evaluate the stop condition `until`."""
        self.accepted = None
        self._watching = self._until is not None
        self._stop_finished_chains()

    def advance(self, steps: int, bar: "tqdm[Any]") -> Tensor:
        """Take `steps` steps with the active chains, and return the tokens (chains, N) of all chains."""
        each = 1 if self._watching or self._trace is not None else _STEPS_AT_ONCE
        while steps:
            count = min(each, steps) if len(self._moving) else steps
            if len(self._moving):
                self._move(count)
            steps -= count
            bar.update(count)
        return self.tokens

    def samples(self, kept: Sequence[int], bar: "tqdm[Any]") -> tuple[list[Tensor], Tensor | None]:
        """Advance by each number of steps in `kept`, and return tokens (chains, N) and energies after each."""
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
        self._stop_finished_chains()

    def _stop_finished_chains(self) -> None:
        if not self._watching or self._until is None:
            return
        there = torch.as_tensor(self._until(self._state.tokens), device=self.tokens.device)
        if there.shape != (len(self._moving),) or there.dtype != torch.bool:
            hint = f"return one bool for each of the {len(self._moving)} rows"
            raise InputError("until", tuple(there.shape), hint)
        if bool(there.any()):
            self.reached[self._moving[there]] = True
            rest = (~there).nonzero()[:, 0]
            self._moving, self._state = self._moving[rest], select_rows(self._state, rest)
            self._streams.select(rest)

    def changes(self) -> Change | None:
        """Return all recorded changes of tokens, or None if no trace was requested."""
        if self._trace is None:
            return None
        nothing = self.steps.new_zeros(0)
        return Change(*map(torch.cat, zip(*self._trace, Change(*[nothing] * 4), strict=False)))


def _validate_start(start: Tensor, model: SequenceModel) -> Tensor:
    checked_model = as_model(model)
    vocab, sites, device = int(checked_model.vocab_size), checked_model.sites, checked_model.device
    hint = f"give token ids of shape (chains, {sites or 'N'}), one row for each chain"
    range_hint = f"use tokens below vocab_size={vocab}"
    start = index_tensor("start", start, (None, sites), vocab, shape_hint=hint, range_hint=range_hint)
    if not start.numel():
        raise InputError("start", tuple(start.shape), hint)
    if device not in (None, start.device):
        raise InputError("start", str(start.device), f"move it to {device}, the device of the model")
    return start


def _validate_chain_ids(chain_ids: Sequence[int] | Tensor | None, chains: int) -> Tensor:
    if chain_ids is None:
        return torch.arange(chains)
    ids = integer_tensor("chain_ids", chain_ids, f"give {chains} different integers").cpu()
    if ids.shape != (chains,) or len(ids.unique()) < chains or int(ids.min()) < 0:
        raise InputError("chain_ids", ids.tolist(), f"give {chains} different integers of at least 0")
    return ids
