"""Check of all requirements for verifiers."""

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args, get_type_hints

import torch
from torch import Tensor

from trialogue.oracles import Autoregressive, Verifier, as_oracle, pad_sequences
from trialogue.randomness import generator
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.engine import generate
from trialogue.samplers.prefix.prompts import maximum_lengths
from trialogue.testing.oracles import first_equal_rows
from trialogue.testing.requirements import require
from trialogue.verifiers.functions.function import VerifierLike, as_verifier

_SCOPES = get_args(get_type_hints(Verifier)["scope"])
_TOLERANCE = 1e-5  # Probes use hidden states, whose rounding errors depend on the batch.


class _Sequences(NamedTuple):
    """Sequences for a test: tokens (n, capacity), lengths (n,), prompt lengths (n,) and length limits (n,)."""

    tokens: Tensor
    lengths: Tensor
    start: Tensor
    limit: Tensor

    def batch(self, oracle: Autoregressive, verifier: Verifier) -> Batch:
        """Return a batch of the sequences."""
        rows, capacity = self.tokens.shape
        batch = Batch(oracle, rows, capacity, layers=tuple(verifier.layers))
        batch.add(self.tokens.clone(), self.lengths, self.start, self.limit)
        return batch

    def of(self, rows: Tensor) -> "_Sequences":
        """Return the sequences with the indices `rows` (m,)."""
        return _Sequences(*(field[rows] for field in self))

    def __str__(self) -> str:
        return str(
            [row[:length] for row, length in zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)]
        )


@torch.inference_mode()
def check_verifier(
    verifier: VerifierLike,
    oracle: Autoregressive,
    prompts: Sequence[Sequence[int]] = ((),),
    *,
    max_new_tokens: int | None = None,
    num_samples: int = 20,
    seed: int = 0,
) -> None:
    """Check that `verifier` satisfies the requirements for verifiers, on samples of `oracle` and their prefixes.

    The checks are:

    - The values (n,) are finite, from 0 to `verifier.most`, and do not change if they are computed again.
    - They depend only on the prefix. If the scope is "completion", they do not depend on the prompt either, which
      requires at least two prompts to be checked.
    - `children` and `values` agree.
    - Prefixes with equal `residuals` have equal values after the same continuations.
    - The batch is not modified.

    Args:
        verifier: Verifier or function of a prefix to check.
        oracle: Oracle from which completions are sampled.
        prompts: Prompts as sequences of token ids (default: the empty prompt).
        max_new_tokens: Maximum length of the completions (default: the limit of the oracle).
        num_samples: Number of samples per prompt (default: 20).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If a requirement is violated.
        InputError: If `generate` rejects the arguments.
    """
    oracle, judged = as_oracle(oracle), as_verifier(verifier)
    require(judged.scope in _SCOPES, verifier, f"scope={judged.scope!r} is not one of {_SCOPES}")
    drawn = generate(oracle, list(prompts), max_new_tokens=max_new_tokens, num_samples=num_samples, seed=seed)
    start = drawn.prompt_lengths
    share = torch.rand(len(start), generator=generator(seed, "prefixes to judge"))
    cut = start + (share * (drawn.lengths - start)).long()
    sequences = _Sequences(
        drawn.tokens.repeat(2, 1),
        torch.cat((drawn.lengths, cut)),
        start.repeat(2),
        maximum_lengths(oracle, start, max_new_tokens).repeat(2),
    )
    values = _values(verifier, judged, sequences.batch(oracle, judged))
    _check_row_independence(verifier, judged, oracle, sequences, values)
    _check_children(verifier, judged, oracle, sequences)
    _check_residuals(verifier, judged, oracle, sequences)
    if judged.scope == "completion":
        _check_prompts_do_not_matter(verifier, judged, oracle, sequences, prompts)


def _values(verifier: Any, judged: Verifier, batch: Batch) -> Tensor:
    """Return the values (n,) float64 of all rows of a batch, after checks of their shape, range and repeatability."""
    rows, held = torch.arange(len(batch.lengths)), (batch.tokens.clone(), batch.lengths.clone())
    values = judged.values(batch, rows)
    message = f"values of {len(rows)} rows have the shape {tuple(values.shape)}"
    require(tuple(values.shape) == (len(rows),), verifier, message)
    values = values.double()
    wrong = values[~(torch.isfinite(values) & (values >= 0))]
    require(not len(wrong), verifier, f"its value {wrong[:1].tolist()} is not finite and at least 0")
    greater = values[values > judged.most]
    require(not len(greater), verifier, f"its value {greater[:1].tolist()} is above most={judged.most}")
    _require_close(verifier, judged.values(batch, rows), values, batch, "in a second evaluation")
    same = torch.equal(batch.tokens, held[0]) and torch.equal(batch.lengths, held[1])
    require(same, verifier, "it modifies the sequences of the batch")
    return values


def _require_close(verifier: Any, values: Tensor, due: Tensor, where: Any, when: str) -> None:
    differ = ((values.double() - due).abs() > _TOLERANCE * due.clamp_min(1)).nonzero()[:, 0].tolist()
    for row in differ[:1]:
        held = where.tokens[row, : int(where.lengths[row])].tolist()
        message = f"the value of {held} is {float(due[row]):.6g}, but {float(values[row]):.6g} {when}"
        require(False, verifier, message)


def _check_row_independence(
    verifier: Any, judged: Verifier, oracle: Autoregressive, sequences: _Sequences, values: Tensor
) -> None:
    for row in torch.arange(len(values)).split(1):
        alone = sequences.of(row)
        answer = judged.values(alone.batch(oracle, judged), torch.zeros(1, dtype=torch.int64))
        _require_close(verifier, answer, values[row], alone, "if it is evaluated alone")
    behind = torch.arange(sequences.tokens.shape[1]) >= sequences.lengths[:, None]
    for token in (0, oracle.vocab_size - 1):
        # The tokens after the end of a sequence are undefined, and the batch may be wider than necessary.
        other = sequences._replace(tokens=torch.where(behind, token, sequences.tokens))
        wider = other._replace(tokens=torch.nn.functional.pad(other.tokens, (0, 3), value=token))
        for held in (other, wider):
            answers = judged.values(held.batch(oracle, judged), torch.arange(len(values)))
            _require_close(verifier, answers, values, held, "with other tokens after its end")
    batch, backwards = sequences.batch(oracle, judged), torch.arange(len(values)).flip(0)
    answers = judged.values(batch, backwards)
    _require_close(verifier, answers.flip(0), values, sequences, "if the rows are in another order")


def _check_children(verifier: Any, judged: Verifier, oracle: Autoregressive, sequences: _Sequences) -> None:
    """Check that `children` agrees with `values` of each child."""
    batch = sequences.batch(oracle, judged)
    rows = batch.growing
    answers = judged.children(batch, rows) if len(rows) else None
    if answers is None:
        return
    shape = (len(rows), batch.vocab_size)
    message = f"children of {len(rows)} rows have the shape {tuple(answers.shape)} instead of {shape}"
    require(tuple(answers.shape) == shape, verifier, message)
    possible = (batch.log_probs(rows) > -torch.inf).nonzero()
    for part in possible.split(1024):
        children = batch.peek(part[:, 1], rows[part[:, 0]])
        each = judged.values(children, torch.arange(len(part)))
        together = answers[part[:, 0], part[:, 1]]
        _require_close(verifier, together, each.double(), children, "in `children`")


def _check_residuals(verifier: Any, judged: Verifier, oracle: Autoregressive, sequences: _Sequences) -> None:
    """Check that sequences with equal residuals have equal values after the same continuations."""
    capacity = sequences.tokens.shape[1]
    for length in range(capacity):
        here = ((sequences.start <= length) & (length < sequences.lengths)).nonzero()[:, 0]
        if not len(here):
            continue
        held = sequences.of(here)._replace(lengths=torch.full_like(here, length))
        residuals = judged.residuals(held.batch(oracle, judged), torch.arange(len(here)))
        if residuals is None:
            return
        alike = first_equal_rows(torch.cat((residuals, held.start[:, None], held.limit[:, None]), 1))
        exchanged = held.tokens.clone()
        exchanged[:, :length] = held.tokens[alike, :length]
        for stop in range(length, capacity + 1):
            longer = (stop <= sequences.lengths[here]).nonzero()[:, 0]
            if len(longer):
                own = held._replace(lengths=torch.full_like(here, stop)).of(longer)
                other, rows = own._replace(tokens=exchanged[longer]), torch.arange(len(longer))
                due = judged.values(own.batch(oracle, judged), rows).double()
                answers = judged.values(other.batch(oracle, judged), rows)
                when = f"if its first {length} tokens are replaced by a prefix that has an equal residual"
                _require_close(verifier, answers, due, own, when)


def _check_prompts_do_not_matter(
    verifier: Any,
    judged: Verifier,
    oracle: Autoregressive,
    sequences: _Sequences,
    prompts: Sequence[Sequence[int]],
) -> None:
    """Check that the values of completions do not depend on the prompt."""
    bounds = zip(sequences.tokens.tolist(), sequences.start.tolist(), sequences.lengths.tolist(), strict=True)
    completions = [tokens[start:length] for tokens, start, length in bounds]
    room, seen = sequences.limit - sequences.start, []
    for prompt in prompts:
        moved, lengths = pad_sequences([[*prompt, *completion] for completion in completions])
        start = torch.full_like(lengths, len(prompt))
        fits = start + room <= (oracle.max_length or int((start + room).max()))
        seen.append((_Sequences(moved, lengths, start, start + room), fits))
    first, kept = seen[0]
    values = judged.values(first.batch(oracle, judged), torch.arange(len(completions))).double()
    for other, fits in seen[1:]:
        both = (kept & fits).nonzero()[:, 0]
        if len(both):
            answers = judged.values(other.of(both).batch(oracle, judged), torch.arange(len(both)))
            _require_close(verifier, answers, values[both], other.of(both), "after another prompt")
