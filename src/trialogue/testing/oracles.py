"""One call that holds an autoregressive oracle to its contract: it answers for a prefix, however that came about."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, as_context, as_oracle, next_log_probs
from trialogue.randomness import generator
from trialogue.samplers.prefix.batch import Batch, View
from trialogue.samplers.prefix.moves import Moves
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
    """Hold `oracle` to the contract of oracles, on sequences of random tokens of up to `capacity` of them.

    Its answers are log-probabilities that sum to one, of `vocab_size` tokens; and they are those for the prefix, to
    `tolerance`, after any appends, rewinds and copies between rows, of children on scratch rows, and beside any others.
    What it says is sufficient of a prefix is so. `capacity` is by default the longest sequence, or 12 where there is
    none that short.

    Raises `AssertionError` that says what is wrong.
    """
    asked = as_oracle(oracle)
    longest = 12 if capacity is None else capacity
    longest = longest if asked.max_length is None else min(longest, asked.max_length)
    first = as_context(asked.open(1, longest)).first
    require(asked.vocab_size >= 1, oracle, f"vocab_size is {asked.vocab_size}")
    ends = asked.eos is None or 0 <= asked.eos < asked.vocab_size
    require(ends, oracle, f"eos is {asked.eos}, which is no token below {asked.vocab_size}")
    for seed in seeds:
        for memory in (1, 4096):
            _check_schedule(oracle, asked, longest, first, steps, seed, memory, tolerance)
        _check_sufficient(oracle, asked, longest, first, seed, tolerance)


def _check_sufficient(
    oracle: object, asked: Autoregressive, capacity: int, first: int, seed: int, tolerance: float
) -> None:
    """After prefixes of which the sufficient statistic is equal, the same tokens lead to the same distributions."""
    draw = generator(seed, "prefixes that are alike")
    tokens = torch.randint(asked.vocab_size, (_ALIKE, capacity), generator=draw)
    for length in range(first, capacity):
        statistic = asked.sufficient(tokens, torch.full((_ALIKE,), length))
        if statistic is None:
            return
        exchanged = tokens.clone()
        exchanged[:, :length] = tokens[first_alike(statistic), :length]
        for stop in range(length, capacity):
            lengths = torch.full((_ALIKE,), stop)
            both = (next_log_probs(asked, held, lengths).exp() for held in (tokens, exchanged))
            far = (next(both) - next(both)).abs().amax(1) > tolerance
            for row in far.nonzero()[:1, 0].tolist():
                alike = [held[row, :stop].tolist() for held in (tokens, exchanged)]
                told = f"it answers otherwise after {alike[0]} than after {alike[1]}, which"
                require(False, oracle, f"{told} it says are alike from token {length} on")


def first_alike(statistic: Tensor) -> Tensor:
    """For each row of `statistic` (n, k) the first equal one (n,)."""
    # There may be no column at all.
    _, group = torch.nn.functional.pad(statistic, (0, 1)).unique(dim=0, return_inverse=True)
    first = torch.full((len(group),), len(group)).scatter_reduce(0, group, torch.arange(len(group)), "amin")
    return first[group]


def _check_schedule(
    oracle: object,
    asked: Autoregressive,
    capacity: int,
    first: int,
    steps: int,
    seed: int,
    memory: int,
    tolerance: float,
) -> None:
    """Compare the answers along a random schedule of moves with those for whole prefixes."""
    draw = generator(seed, "schedule of an oracle's check")
    tokens = [token for token in range(asked.vocab_size) if token != asked.eos] or [0]

    def integers(high: int, size: int) -> Tensor:
        return torch.randint(0, high, (size,), generator=draw)

    def drawn(size: int) -> Tensor:
        return torch.tensor(tokens)[integers(len(tokens), size)]

    def compare(decoding: View, rows: Tensor, what: str) -> None:
        rows = rows[(decoding.lengths[rows] >= first) & (decoding.lengths[rows] < capacity)]
        if not len(rows):
            return
        try:
            answers, shape = decoding.log_probs(rows), (len(rows), asked.vocab_size)
        except InputError as error:
            require(error.field != "oracle", oracle, str(error))
            raise
        require(
            tuple(answers.shape) == shape,
            oracle,
            f"answers have the shape {tuple(answers.shape)}, not {shape}",
        )
        total = answers.double().logsumexp(1).exp()
        told = f"probabilities sum to {float(total[0])}"
        require(bool(((total - 1).abs() <= max(1e-4, tolerance)).all()), oracle, told)
        fresh = next_log_probs(asked, decoding.tokens[rows], decoding.lengths[rows])
        apart = (answers.double() - fresh.to(answers.device).double()).nan_to_num(0).abs()
        apart = apart.masked_fill(answers.isinf() & fresh.isinf(), 0).amax(1)
        worst = int(apart.argmax())
        held = decoding.tokens[rows[worst], : int(decoding.lengths[rows[worst]])].tolist()
        told = f"after {held} {what} it answers {float(apart[worst]):.2g} apart from a fresh evaluation"
        require(float(apart[worst]) <= tolerance, oracle, told)

    batch = Batch(asked, _ROWS, capacity, memory=memory)
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
        compare(batch, (integers(3, rows) > 0).nonzero()[:, 0], "among rows that grow, shrink and are copied")
        inner = (batch.lengths < capacity - 1).nonzero()[:, 0]
        if len(inner) and int(integers(3, 1)) == 0:
            children = batch.peek(drawn(len(inner)), inner)
            compare(children, torch.arange(len(inner)), "on scratch rows")
        if int(integers(8, 1)) == 0:
            batch.select((integers(2, rows) > 0).nonzero()[:, 0])
