"""Enumeration of all states that a sampler can reach on a small model."""

import math
import sys
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from torch import Tensor
from tqdm import tqdm

from trialogue.enumeration import Enumeration
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, as_oracle, pad_sequences
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.objects import ObjectColumn
from trialogue.samplers.prefix.contract.sampler import (
    Sampler,
    concatenate_states,
    log_weight,
    prepare_sampler,
    select_rows,
)
from trialogue.samplers.prefix.prompts import (
    maximum_lengths,
    replace_empty_prompts,
    require_known_tokens,
    token_ids,
)
from trialogue.validation import Count, check
from trialogue.verifiers.functions.function import VerifierLike, as_verifier

Sequence_ = tuple[int, ...]
Array = NDArray[np.float64]
FAILED = -1
"""Index of the output of a sampler that stops on an incomplete sequence."""
_ROWS_AT_ONCE = 4096
_DIGITS = 13
"""Number of decimals to which relative log-weights of the rows of a sample are compared."""


class EndStates(NamedTuple):
    """All ways in which a sampler can end, with one entry in each array per way.

    Attributes:
        state: Index (k,) of the last state.
        output: Index (k,) of the output, or `FAILED`.
        log_weight: Log-weight (k,) of the output, 0 for samplers without weights.
        probability: Probability (k,) of ending in this way from the state.
    """

    state: NDArray[np.int64]
    output: NDArray[np.int64]
    log_weight: Array
    probability: Array


@dataclass(frozen=True, eq=False)
class ReachableStates:
    """All n states that a sampler can reach, and the probabilities of moving between them.

    A state consists of the sequences (rows) of one sample and what the sampler stores about them. The first
    state is the start. States whose importance weights differ only by a common factor are merged.

    Args:
        prefixes: Token ids of the first row in each state.
        transitions: Transition probabilities (n, n).
        weighted: Transition probabilities times the mean factors (n, n) by which weights change. None for
            samplers without weights.
        queries: Expected number (n,) of model calls of a step from each state.
        outputs: Token ids of each possible output.
        ended: The ways in which the sampler can end.
    """

    prefixes: list[Sequence_]
    transitions: csr_array
    weighted: csr_array | None
    queries: Array
    outputs: list[Sequence_]
    ended: EndStates


class StateEnumeration:
    """Enumerates all states that a sampler can reach from a prompt, over all outcomes of its random choices.

    Args:
        sampler: The sampler.
        oracle: A small model.
        verifier: The verifier, if the sampler needs one.
        prompt: Token ids of the prompt (default: empty).
        max_new_tokens: Maximum length of a completion (default: up to the oracle's `max_length`).
        max_states: Largest number of states (default: 1,000,000).

    Raises:
        InputError: If there are more than `max_states` states, or if `generate` would raise one.
    """

    def __init__(
        self,
        sampler: Sampler[Any],
        oracle: Autoregressive,
        verifier: VerifierLike | None = None,
        *,
        prompt: Sequence_ = (),
        max_new_tokens: int | None = None,
        max_states: int = 1_000_000,
    ) -> None:
        oracle = as_oracle(oracle)
        sampler = prepare_sampler(sampler, oracle, verifier)
        self._sampler, self._members = sampler, sampler.rows_per_sample
        self._max_states = check("max_states", max_states, Count)
        tokens, lengths = replace_empty_prompts(
            oracle, *pad_sequences([token_ids("prompt", prompt).tolist()])
        )
        self._prompt = tuple(tokens[0].tolist())
        require_known_tokens(tokens, lengths, oracle.vocab_size)
        self._limit = int(maximum_lengths(oracle, lengths, max_new_tokens)[0])
        self._groups_at_once = max(1, _ROWS_AT_ONCE // self._members)
        resolved = None if verifier is None else as_verifier(verifier)
        layers = () if resolved is None else tuple(resolved.layers)
        self._batch = Batch(oracle, self._groups_at_once * self._members, self._limit, layers=layers)
        self._verifier = (
            cast(CachedVerifier, None) if resolved is None else CachedVerifier(resolved, self._batch)
        )
        # Tokens, lengths and sampler state of the rows of each state.
        self._states: list[tuple[Tensor, Tensor, Any]] = []
        self._places: dict[bytes, int] = {}
        self._objects: dict[Hashable, int] = {}
        self._outputs: dict[Sequence_, int] = {}
        places, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
        # Source, target, probability, and probability times the growth of weights.
        self._moves: list[tuple[NDArray[Any], ...]] = [(places, places, numbers, numbers)]
        self._ends = [EndStates(places, places, numbers, numbers)]
        self._queries: list[float] = []

    @torch.inference_mode()
    def run(self, *, progress: bool = False) -> ReachableStates:
        """Enumerate all states with their transitions, and all ways in which the sampler can end.

        Args:
            progress: Whether to count the states on standard error (default: False).
        """
        tokens = torch.zeros(self._members, self._limit, dtype=torch.int64)
        tokens[:, : len(self._prompt)] = torch.tensor(self._prompt, dtype=torch.int64)
        lengths = torch.full((self._members,), len(self._prompt))
        self._load([(tokens, lengths)])
        self._index_states(tokens, lengths, self._sampler.init(self._batch))
        bar = tqdm(desc="states of the sampler", unit="state", disable=not progress, leave=False)
        with bar:
            while len(self._queries) < len(self._states):
                first = len(self._queries)
                self._step_from_states(first, min(len(self._states), first + self._groups_at_once))
                bar.total = len(self._states)
                bar.update(len(self._queries) - first)
        size = len(self._states)
        source, target, *distributions = (np.concatenate(parts) for parts in zip(*self._moves, strict=True))
        matrices = [
            coo_array((distribution, (source, target)), shape=(size, size)).tocsr()
            for distribution in distributions
        ]
        ended = EndStates(*(np.concatenate(parts) for parts in zip(*self._ends, strict=True)))
        if self._verifier is not None and self._verifier.has_targets and not self._sampler.uses_targets:
            log_weight = ended.log_weight + np.append(self._log_targets(), 0.0)[ended.output]
            ended = ended._replace(log_weight=log_weight)
        return ReachableStates(
            [tuple(tokens[0, : int(lengths[0])].tolist()) for tokens, lengths, _ in self._states],
            matrices[0],
            matrices[1] if self._sampler.weighted else None,
            np.array(self._queries),
            list(self._outputs),
            ended,
        )

    def _load(self, sequences: list[tuple[Tensor, Tensor]]) -> None:
        batch, rows = self._batch, sum(len(lengths) for _, lengths in sequences)
        batch.select(torch.zeros(0, dtype=torch.int64))
        batch.add(
            torch.cat([tokens for tokens, _ in sequences]),
            torch.cat([lengths for _, lengths in sequences]),
            torch.full((rows,), len(self._prompt)),
            torch.full((rows,), self._limit),
        )

    def _log_targets(self) -> Array:
        """Return the sum of the log-values of all targets for each output, -inf for rejected outputs."""
        outputs, count = list(self._outputs), self._groups_at_once
        log_values = [torch.zeros(0, dtype=torch.float64)]
        for first in range(0, len(outputs), count):
            self._load([pad_sequences([output], self._limit) for output in outputs[first : first + count]])
            rows = torch.arange(len(self._batch.lengths))
            accepted = (self._verifier.values(rows) > 0).nonzero()[:, 0]
            log_values.append(torch.full((len(rows),), -math.inf, dtype=torch.float64))
            log_values[-1][accepted] = self._verifier.log_targets(accepted)
        return torch.cat(log_values).numpy()

    def _step_from_states(self, first: int, last: int) -> None:
        """Take one step of the sampler from each state in the range from `first` to `last`."""
        members, batch, states = self._members, self._batch, self._states[first:last]
        self._load([(tokens, lengths) for tokens, lengths, _ in states])
        state = concatenate_states([state for _, _, state in states])
        # Branches whose probability underflows are included, so that all reachable states are found.
        enumeration = Enumeration(len(states), members, smallest=sys.float_info.min * sys.float_info.epsilon)
        query_counts = torch.zeros(len(states), dtype=torch.float64)

        def step() -> tuple[Moves, Any, Tensor]:
            before = batch.meter.queries.clone()
            moves, after = self._sampler.step(batch, state, self._verifier, enumeration.choose)
            return moves, after, (batch.meter.queries - before).view(-1, members).sum(1).double()

        for weights, (moves, after, queries) in enumeration.branches(step):
            query_counts += weights * queries
            tokens, lengths = moves.applied(batch.tokens)
            tokens = tokens * (torch.arange(tokens.shape[1]) < lengths[:, None])
            kept, done = select_rows(after, moves.source), moves.done.view(-1, members).all(1)
            ended, going = (((weights > 0) & which).nonzero()[:, 0] for which in (done, ~done))
            if len(going):
                rows = (going[:, None] * members + torch.arange(members)).flatten()
                arranged = self._sampler.arranged(tokens[rows], lengths[rows], select_rows(kept, rows))
                relative, growth = self._normalise_weights(arranged[2])
                target = self._index_states(arranged[0], arranged[1], relative)
                probability = weights[going]
                moved = (first + going, target, probability, probability * growth)
                self._moves.append(tuple(np.asarray(column) for column in moved))
            if len(ended):
                leading = ended * members
                output = self._index_outputs(tokens[leading], lengths[leading])
                weighed = torch.zeros(len(ended), dtype=torch.float64)
                if self._sampler.weighted:
                    weighed = log_weight(select_rows(kept, leading)).double()
                self._ends.append(
                    EndStates((first + ended).numpy(), output, weighed.numpy(), weights[ended].numpy())
                )
        self._queries += query_counts.tolist()

    def _normalise_weights(self, state: Any) -> tuple[Any, Tensor]:
        """Divide the importance weights of each sample by the largest weight of its rows.

        Returns the new state, and these largest weights (groups,).
        """
        if not self._sampler.weighted:
            return state, torch.ones((), dtype=torch.float64)
        log_weights = log_weight(state).view(-1, self._members)
        most = log_weights.amax(1)
        most = most.masked_fill(most == -math.inf, 0.0)
        relative = (log_weights - most[:, None]).flatten().round(decimals=_DIGITS)
        return state._replace(log_weight=relative), most.double().exp()

    def _index_states(self, tokens: Tensor, lengths: Tensor, state: Any) -> NDArray[np.int64]:
        """Return the index (groups,) of the state of each sample. New states are added to the list."""
        members = self._members
        groups = len(lengths) // members
        columns = (self._number_objects(field) for field in (tokens, lengths, *state))
        fields = [column.contiguous().numpy().reshape(groups, -1) for column in columns]
        keys = np.concatenate([field.view(np.uint8) for field in fields], 1)
        places = np.empty(groups, dtype=np.int64)
        for group in range(groups):
            place = self._places.setdefault(keys[group].tobytes(), len(self._states))
            places[group] = place
            if place == len(self._states):
                if place >= self._max_states:
                    hint = "use a smaller oracle, or increase `max_states`"
                    raise InputError("max_states", self._max_states, hint)
                rows = slice(group * members, (group + 1) * members)
                own = type(state)(*(field[rows] for field in state))
                self._states.append((tokens[rows], lengths[rows], own))
        return places

    def _number_objects(self, field: Tensor | ObjectColumn) -> Tensor:
        """Convert a field of a state to a tensor. Python objects become integers, equal for equal objects."""
        if isinstance(field, Tensor):
            return field
        return torch.tensor([self._objects.setdefault(item, len(self._objects)) for item in field.items])

    def _index_outputs(self, tokens: Tensor, lengths: Tensor) -> NDArray[np.int64]:
        """Return the index (n,) of each output, adding new outputs. Incomplete sequences have the index `FAILED`."""
        eos, places = self._batch.eos, []
        for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True):
            output = tuple(row[:length])
            complete = length >= self._limit or (eos is not None and output[-1:] == (eos,))
            places.append(self._outputs.setdefault(output, len(self._outputs)) if complete else FAILED)
        return np.array(places, dtype=np.int64)
