"""Check of all requirements for autoregressive models."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, as_context, as_oracle, next_log_probs
from trialogue.randomness import generator
from trialogue.samplers.prefix.batch import Batch, View
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.testing.requirements import require

_ROWS = 6
_ALIKE = 64


@torch.inference_mode()
def check_oracle(
    oracle: Autoregressive,
    *,
    capacity: int | None = None,
    tolerance: float = 1e-4,
    steps: int = 40,
    seeds: Sequence[int] = (0, 1, 2),
) -> None:
    """Check that `oracle` satisfies the requirements for autoregressive oracles, on random sequences.

    The checks are:

    - The next-token probabilities of `vocab_size` tokens sum to 1.
    - The results depend only on the prefix. They are compared with a fresh evaluation after random appends, rewinds and
      copies between rows, and for children on temporary rows.
    - If the oracle defines sufficient statistics, equal statistics imply equal distributions for all continuations.

    Args:
        oracle: Oracle to check.
        capacity: Maximum length of the sequences (default: `oracle.max_length`, but at most 12).
        tolerance: Largest difference of log-probabilities (default: 1e-4).
        steps: Number of random operations per run (default: 40).
        seeds: Random seeds, one run each (default: 0, 1, 2).

    Raises:
        AssertionError: If a requirement is violated.
    """
    model = as_oracle(oracle)
    longest = 12 if capacity is None else capacity
    longest = longest if model.max_length is None else min(longest, model.max_length)
    first = as_context(model.open(1, longest)).first
    require(model.vocab_size >= 1, oracle, f"vocab_size is {model.vocab_size}")
    ends = model.eos is None or 0 <= model.eos < model.vocab_size
    require(ends, oracle, f"eos is {model.eos}, which is not a token id below {model.vocab_size}")
    for seed in seeds:
        for memory in (1, 4096):
            _check_schedule(oracle, model, longest, first, steps, seed, memory, tolerance)
        _check_sufficient(oracle, model, longest, first, seed, tolerance)


def _check_sufficient(
    oracle: object, model: Autoregressive, capacity: int, first: int, seed: int, tolerance: float
) -> None:
    """Check that an oracle gives equal distributions to prefixes with equal results of its method `sufficient`.

    Args:
        oracle: Oracle named in error messages.
        model: The same oracle, as returned by `as_oracle`.
        capacity: Length of the random sequences.
        first: Length of the shortest prefix that the oracle can evaluate.
        seed: Seed of the random sequences.
        tolerance: Largest difference of probabilities.
    """
    draw = generator(seed, "prefixes that are alike")
    tokens = torch.randint(model.vocab_size, (_ALIKE, capacity), generator=draw)
    for length in range(first, capacity):
        statistic = model.sufficient(tokens, torch.full((_ALIKE,), length))
        if statistic is None:
            return
        exchanged = tokens.clone()
        exchanged[:, :length] = tokens[first_equal_rows(statistic), :length]
        for stop in range(length, capacity):
            lengths = torch.full((_ALIKE,), stop)
            both = (next_log_probs(model, held, lengths).exp() for held in (tokens, exchanged))
            far = (next(both) - next(both)).abs().amax(1) > tolerance
            for row in far.nonzero()[:1, 0].tolist():
                first_prefix, other_prefix = (held[row, :stop].tolist() for held in (tokens, exchanged))
                message = (
                    f"its distributions after {first_prefix} and {other_prefix} differ, although the sufficient "
                    f"statistics of the first {length} tokens are equal"
                )
                require(False, oracle, message)


def first_equal_rows(statistic: Tensor) -> Tensor:
    """Return, for each row of a matrix, the index of the first row that is equal to it.

    Args:
        statistic: Matrix (n, k).

    Returns:
        Row indices (n,) int64. Entry i is at most i.
    """
    # A column of zeros is added, because `unique` needs at least one column.
    _, group = torch.nn.functional.pad(statistic, (0, 1)).unique(dim=0, return_inverse=True)
    first = torch.full((len(group),), len(group)).scatter_reduce(0, group, torch.arange(len(group)), "amin")
    return first[group]


def _check_schedule(
    oracle: object,
    model: Autoregressive,
    capacity: int,
    first: int,
    steps: int,
    seed: int,
    memory: int,
    tolerance: float,
) -> None:
    """Compare the results during a random sequence of operations with fresh evaluations of the prefixes."""
    draw = generator(seed, "schedule of an oracle's check")
    tokens = [token for token in range(model.vocab_size) if token != model.eos] or [0]

    def integers(high: int, size: int) -> Tensor:
        return torch.randint(0, high, (size,), generator=draw)

    def drawn(size: int) -> Tensor:
        return torch.tensor(tokens)[integers(len(tokens), size)]

    def compare(decoding: View, rows: Tensor, what: str) -> None:
        rows = rows[(decoding.lengths[rows] >= first) & (decoding.lengths[rows] < capacity)]
        if not len(rows):
            return
        try:
            log_probs, shape = decoding.log_probs(rows), (len(rows), model.vocab_size)
        except InputError as error:
            require(error.field != "oracle", oracle, str(error))
            raise
        require(
            tuple(log_probs.shape) == shape,
            oracle,
            f"log_probs have the shape {tuple(log_probs.shape)} instead of {shape}",
        )
        total = log_probs.double().logsumexp(1).exp()
        message = f"probabilities sum to {float(total[0])}"
        require(bool(((total - 1).abs() <= max(1e-4, tolerance)).all()), oracle, message)
        fresh = next_log_probs(model, decoding.tokens[rows], decoding.lengths[rows])
        apart = (log_probs.double() - fresh.to(log_probs.device).double()).nan_to_num(0).abs()
        apart = apart.masked_fill(log_probs.isinf() & fresh.isinf(), 0).amax(1)
        worst = int(apart.argmax())
        held = decoding.tokens[rows[worst], : int(decoding.lengths[rows[worst]])].tolist()
        message = (
            f"after {held} {what}, log_probs differ from a fresh evaluation by {float(apart[worst]):.2g}"
        )
        require(float(apart[worst]) <= tolerance, oracle, message)

    batch = Batch(model, _ROWS, capacity, memory=memory)
    for _ in range(steps):
        room = _ROWS - len(batch.lengths)
        if room > _ROWS // 2:
            start = first + integers(max(1, capacity // 2 - first), room)
            prompts = drawn(room * capacity).view(room, capacity) * (torch.arange(capacity) < start[:, None])
            batch.add(prompts, start, start, torch.full((room,), capacity))
        rows = len(batch.lengths)
        source = torch.where(integers(4, rows) == 0, integers(rows, rows), torch.arange(rows))
        held = batch.lengths[source]
        back = torch.where(integers(3, rows) == 0, integers(4, rows), 0)
        length = (held - back).clamp_min(first).minimum(held)
        token = torch.where((integers(6, rows) > 0) & (length < capacity), drawn(rows), -1)
        batch.apply(Moves(source, length, token, torch.zeros(rows, dtype=torch.bool)))
        compare(batch, (integers(3, rows) > 0).nonzero()[:, 0], "in a batch with appends, rewinds and copies")
        inner = (batch.lengths < capacity - 1).nonzero()[:, 0]
        if len(inner) and int(integers(3, 1)) == 0:
            children = batch.peek(drawn(len(inner)), inner)
            compare(children, torch.arange(len(inner)), "on temporary rows")
        if int(integers(8, 1)) == 0:
            batch.select((integers(2, rows) > 0).nonzero()[:, 0])
