"""Every incremental answer is held against a fresh forward pass over the same prefixes."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from models.random_transformer import small
from trialogue.errors import InputError
from trialogue.models import Transformer
from trialogue.models.caching.attention_cache import AttentionCache
from trialogue.randomness import numpy_generator

CAPACITY = 9
LAYERS = (0, 2, 1)
TOLERANCE = 1e-4


def fresh(model: Transformer, tokens: Tensor, stop: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Log-probabilities, and hidden states of `LAYERS` and -1, at `stop`, by a full pass."""
    bos = torch.full((len(tokens), 1), model.bos)
    states = model.hidden_states(torch.cat((bos, tokens), 1))
    last = [states[layer][torch.arange(len(tokens)), stop] for layer in (*LAYERS, -1)]
    return model.head(last[-1]).log_softmax(-1), last


class Schedule:
    """Random appends, rewinds, copies and forks; positions below `known` are stored for the row's `tokens`."""

    def __init__(self, model: Transformer, rows: int, seed: int) -> None:
        self.model, self.rows = model, rows
        self.random = numpy_generator(seed, "schedule")
        self.context = model.open(rows, CAPACITY, LAYERS)
        self.tokens = torch.zeros(rows, CAPACITY, dtype=torch.int64)
        self.known = torch.zeros(rows, dtype=torch.int64)

    def integers(self, low: int, high: int | np.ndarray, shape: object = None) -> Tensor:
        return torch.from_numpy(np.asarray(self.random.integers(low, high, shape)))

    def some_rows(self) -> Tensor:
        chosen = torch.from_numpy(
            self.random.permutation(self.rows)[: self.random.integers(1, self.rows + 1)]
        )
        return chosen.sort().values if self.random.random() < 0.5 else chosen

    def copy(self) -> None:
        chosen = self.some_rows()
        source = torch.from_numpy(self.random.permutation(self.rows)[: len(chosen)])
        agreed = 1 + (self.tokens[source] == self.tokens[chosen]).long().cumprod(1).sum(1)
        start = torch.minimum(agreed, torch.minimum(self.known[source], self.known[chosen])).min()
        self.context.copy(source, chosen, int(start), int(self.known[source].max()) - 1)
        self.tokens[chosen], self.known[chosen] = self.tokens[source], self.known[source]

    def fork(self) -> None:
        source = self.integers(0, self.rows, self.rows)
        forked = self.context.fork(source, CAPACITY)
        stays, goes = (self.context, forked) if self.random.random() < 0.5 else (forked, self.context)
        if stays is forked:
            self.tokens, self.known = self.tokens[source], self.known[source]
        # What happens to the other one must not be seen.
        noise = self.integers(0, self.model.vocab_size, (self.rows, CAPACITY))
        everything = torch.arange(self.rows)
        goes.features(noise, torch.zeros_like(everything), torch.full_like(everything, CAPACITY), everything)
        self.context = stays

    def extend(self) -> float:
        """Rewind some rows, append to them, and return the worst difference from a fresh pass."""
        chosen = self.some_rows()
        start = self.integers(0, self.known[chosen].numpy() + 1)
        longest = CAPACITY if self.random.random() < 0.3 else 2
        stop = (start + self.integers(0, longest, len(chosen))).clamp_max(CAPACITY)
        if self.random.random() < 0.3:
            stop = torch.full_like(stop, int(stop.max()))
        start = torch.minimum(start, stop)
        drawn = self.integers(0, self.model.vocab_size, (len(chosen), CAPACITY))
        kept = torch.arange(CAPACITY) < start[:, None] - 1
        tokens = self.tokens[chosen] = torch.where(kept, self.tokens[chosen], drawn)
        features = self.context.features(tokens, start, stop, chosen)
        self.known[chosen] = stop + 1
        log_probs, last = fresh(self.model, tokens, stop)
        errors = [self.context.log_probs(features) - log_probs]
        errors += [
            self.context.hidden(features, layer) - state
            for layer, state in zip((*LAYERS, -1), last, strict=True)
        ]
        return max(error.abs().nan_to_num(nan=math.inf).max().item() for error in errors)

    def run(self, steps: int) -> float:
        worst = 0.0
        for _ in range(steps):
            move = self.random.random()
            if move < 0.2:
                self.copy()
            elif move < 0.3:
                self.fork()
            else:
                worst = max(worst, self.extend())
        return worst


def largest_error(schedules: int, rows: int, steps: int = 12, **fields: object) -> float:
    model = small(**fields)
    with torch.inference_mode():
        return max(Schedule(model, rows, seed).run(steps) for seed in range(schedules))


@pytest.mark.parametrize(
    ("schedules", "rows", "fields"),
    [(40, 4, {}), (12, 40, {}), (20, 5, {"positions": "linear"}), (20, 5, {"positions": "none"}), (10, 1, {}),
     (20, 20, {"layers": 3, "heads": 1}), (10, 20, {"heads": 16, "width": 32}),
     (20, 4, {"attention_window": 3}), (20, 40, {"attention_window": 2}), (20, 5, {"attention_window": 1}),
     (20, 5, {"attention_window": 4, "positions": "none", "layers": 3}), (10, 5, {"attention_window": 20}),
     (20, 5, {"scaled_attention": False}), (20, 40, {"scaled_attention": False})],
)  # fmt: skip
def test_incremental_answers_equal_fresh_passes(schedules: int, rows: int, fields: dict[str, object]) -> None:
    assert largest_error(schedules, rows, **fields) < TOLERANCE


def _positions_not_shifted(self: AttentionCache, tokens: Tensor, positions: Tensor) -> Tensor:
    return tokens.gather(1, positions.clamp_max(CAPACITY - 1)[:, None])[:, 0]


def _keys_not_written(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def write(self: AttentionCache, layer: int, weights: object, x: Tensor, where: Tensor) -> Tensor:
        return original(self, layer, weights, x, where * 0 if layer else where)

    return write


def _future_seen(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def attend(self: AttentionCache, q: Tensor, k: Tensor, v: Tensor, unseen: Tensor | None) -> Tensor:
        return original(self, q, k, v, None if unseen is None else torch.zeros_like(unseen))

    return attend


def _copied_row_by_row(self: AttentionCache, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
    for one, other in zip(source.tolist(), rows.tolist(), strict=True):
        self._store[:, other, start : stop + 1] = self._store[:, one, start : stop + 1]


def _copied_short(original: Callable[..., None]) -> Callable[..., None]:
    def copy(self: AttentionCache, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        original(self, source, rows, start, stop - 1)

    return copy


def _forked_without_order(self: AttentionCache, rows: Tensor, stop: int) -> AttentionCache:
    return AttentionCache(self._model, len(rows), self._capacity, self._layers, self._store)


def _forked_sharing_memory(self: AttentionCache, rows: Tensor, stop: int) -> AttentionCache:
    return self


def _seen_too_little(self: AttentionCache, first: int, last: int) -> slice:
    return slice(0 if self._window is None else max(0, last + 1 - self._window), last + 1)


def _everything_seen(self: AttentionCache, first: int, last: int) -> slice:
    return slice(0, last + 1)


MUTANTS: dict[str, tuple[str, Callable[..., object]]] = {
    "positions not shifted by BOS": ("_ids", _positions_not_shifted),
    "stale keys": ("_store_keys_values", _keys_not_written(AttentionCache._store_keys_values)),
    "the future is seen by a run": ("_attend", _future_seen(AttentionCache._attend)),
    "the future is seen by one query": ("_attend_once", _future_seen(AttentionCache._attend_once)),
    "the future is seen by one product": (
        "_attend_by_product",
        _future_seen(AttentionCache._attend_by_product),
    ),
    "runs are not filled": ("_fill", lambda *arguments: None),
    "copies see each other": ("copy", _copied_row_by_row),
    "copies end one position early": ("copy", _copied_short(AttentionCache.copy)),
    "no copy": ("copy", lambda *arguments: None),
    "forks keep the order of rows": ("fork", _forked_without_order),
    "forks share memory": ("fork", _forked_sharing_memory),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_check_rejects(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, mutant = MUTANTS[name]
    monkeypatch.setattr(AttentionCache, method, mutant)
    rows, layers = (20, 2) if "product" in name else (4, 3)
    assert largest_error(15, rows, layers=layers) > 10 * TOLERANCE


@pytest.mark.parametrize("mutant", [_seen_too_little, _everything_seen])
def test_the_check_rejects_another_window(
    mutant: Callable[..., slice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AttentionCache, "_key_range", mutant)
    assert largest_error(15, 4, attention_window=3) > 10 * TOLERANCE


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(dtype: torch.dtype) -> None:
    model = small().to(dtype)
    tokens = torch.tensor([[0, 1, 2, 3], [2, 2, 1, 0]])
    stop, rows = torch.tensor([4, 2]), torch.arange(2)
    context = model.open(2, 4, LAYERS)
    log_probs = context.log_probs(context.features(tokens, torch.zeros_like(stop), stop, rows))
    exact, _ = fresh(small().double(), tokens, stop)
    assert log_probs.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    tolerance = {torch.bfloat16: 0.2, torch.float16: 0.02, torch.float64: 1e-6}[dtype]
    torch.testing.assert_close(log_probs.double(), exact.to(torch.float64), atol=tolerance, rtol=0)


def test_a_context_outlives_inference_mode_and_holds_no_graph() -> None:
    model = small()
    with torch.inference_mode():
        context = model.open(2, 4)
        forked = context.fork(torch.tensor([1, 0]), 4)
    rows, stop = torch.arange(2), torch.tensor([2, 2])
    for one in (context, forked):
        features = one.features(torch.zeros(2, 4, dtype=torch.int64), stop * 0, stop, rows)
        assert not features.requires_grad
        assert not one.log_probs(features).requires_grad
        one.copy(rows.flip(0), rows, 0, 2)


def test_no_rows_and_no_capacity_are_fine_and_too_much_is_refused() -> None:
    model = small()
    context = model.open(2, 0, (0,))
    empty = torch.zeros(2, dtype=torch.int64)
    features = context.features(torch.zeros(2, 0, dtype=torch.int64), empty, empty, torch.arange(2))
    assert features.shape == (2, 16)
    nothing = torch.zeros(0, dtype=torch.int64)
    assert context.features(nothing[:, None], nothing, nothing, nothing).shape == (0, 16)
    with pytest.raises(InputError, match="larger context"):
        context.features(torch.zeros(2, 1, dtype=torch.int64), empty, empty + 1, torch.arange(2))
    with pytest.raises(InputError, match="not recorded"):
        context.hidden(features, 1)
