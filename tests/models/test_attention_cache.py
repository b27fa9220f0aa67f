"""Cached evaluation of prefixes, compared with uncached forward passes."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from models.random_transformer import small
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.models import Transformer
from trialogue.models.caching.attention_cache import AttentionCache
from trialogue.randomness import numpy_generator

CAPACITY = 9
LAYERS = (0, 2, 1)
TOLERANCE = 1e-4


def uncached_pass(model: Transformer, tokens: Tensor, stop: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return log-probabilities and hidden states of `LAYERS` and -1 at `stop` from a forward pass without a cache."""
    bos = torch.full((len(tokens), 1), model.bos)
    states = model.hidden_states(torch.cat((bos, tokens), 1))
    last = [states[layer][torch.arange(len(tokens)), stop] for layer in (*LAYERS, -1)]
    return model.head(last[-1]).log_softmax(-1), last


class Schedule:
    """Random appends, rewinds, copies and forks. Positions of a row below `known` are cached."""

    def __init__(self, model: Transformer, rows: int, seed: int) -> None:
        self.model, self.rows = model, rows
        self.random = numpy_generator(seed, "schedule")
        self.context = model.open(rows, CAPACITY, LAYERS)
        self.tokens = torch.zeros(rows, CAPACITY, dtype=torch.int64)
        self.known = torch.zeros(rows, dtype=torch.int64)

    def integers(self, low: int, high: int | np.ndarray, shape: object = None) -> Tensor:
        return torch.from_numpy(np.asarray(self.random.integers(low, high, shape)))

    def random_rows(self) -> Tensor:
        chosen = torch.from_numpy(
            self.random.permutation(self.rows)[: self.random.integers(1, self.rows + 1)]
        )
        return chosen.sort().values if self.random.random() < 0.5 else chosen

    def copy(self) -> None:
        chosen = self.random_rows()
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
        # Changes of the original must not affect the fork.
        noise = self.integers(0, self.model.vocab_size, (self.rows, CAPACITY))
        everything = torch.arange(self.rows)
        goes.features(noise, torch.zeros_like(everything), torch.full_like(everything, CAPACITY), everything)
        self.context = stays

    def extend(self) -> float:
        """Rewind random rows, append to them, and return the largest difference from an uncached pass."""
        chosen = self.random_rows()
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
        log_probs, last = uncached_pass(self.model, tokens, stop)
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
def test_cached_evaluation_equals_uncached_passes(schedules, rows, fields):
    assert largest_error(schedules, rows, **fields) < TOLERANCE


def _remove_mask(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def attend(self: AttentionCache, q: Tensor, k: Tensor, v: Tensor, unseen: Tensor | None) -> Tensor:
        return original(self, q, k, v, None if unseen is None else torch.zeros_like(unseen))

    return attend


def _fork_without_copy(self: AttentionCache, rows: Tensor, stop: int) -> AttentionCache:
    return self


def _no_window(self: AttentionCache, first: int, last: int) -> slice:
    return slice(0, last + 1)


MUTANTS: dict[str, Callable[..., object]] = {
    "_attend_once": _remove_mask(AttentionCache._attend_once),
    "_fill": lambda *arguments: None,
    "copy": lambda *arguments: None,
    "fork": _fork_without_copy,
}


@pytest.mark.parametrize("method", MUTANTS)
def test_check_rejects_wrong_caches(method, monkeypatch):
    monkeypatch.setattr(AttentionCache, method, MUTANTS[method])
    assert largest_error(15, 4, layers=3) > 10 * TOLERANCE


def test_check_rejects_a_missing_window(monkeypatch):
    monkeypatch.setattr(AttentionCache, "_key_range", _no_window)
    assert largest_error(15, 4, attention_window=3) > 10 * TOLERANCE


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_lower_and_higher_precision(dtype):
    model = small().to(dtype)
    tokens = torch.tensor([[0, 1, 2, 3], [2, 2, 1, 0]])
    stop, rows = torch.tensor([4, 2]), torch.arange(2)
    context = model.open(2, 4, LAYERS)
    log_probs = context.log_probs(context.features(tokens, torch.zeros_like(stop), stop, rows))
    exact, _ = uncached_pass(small().double(), tokens, stop)
    assert log_probs.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    tolerance = {torch.bfloat16: 0.2, torch.float16: 0.02, torch.float64: 1e-6}[dtype]
    torch.testing.assert_close(log_probs.double(), exact.to(torch.float64), atol=tolerance, rtol=0)


def test_context_works_outside_inference_mode_without_gradients():
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


def test_empty_inputs_and_invalid_arguments():
    model = small()
    context = model.open(2, 0, (0,))
    empty = torch.zeros(2, dtype=torch.int64)
    features = context.features(torch.zeros(2, 0, dtype=torch.int64), empty, empty, torch.arange(2))
    assert features.shape == (2, 16)
    nothing = torch.zeros(0, dtype=torch.int64)
    assert context.features(nothing[:, None], nothing, nothing, nothing).shape == (0, 16)
    with pytest.raises(InputError, match="larger context"):
        context.features(torch.zeros(2, 1, dtype=torch.int64), empty, empty + 1, torch.arange(2))
    expect_error("not recorded", context.hidden, features, 1)
