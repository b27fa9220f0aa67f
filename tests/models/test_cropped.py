"""Cropped and endless oracles, compared with uncached passes over the last tokens."""

from typing import Any

import pytest
import torch
from torch import Tensor

from models.random_transformer import small
from models.tiny_pretrained import tiny_oracle
from refusals import expect_error
from trialogue.data import Table
from trialogue.models.wrappers.cropped import Cropped, Endless
from trialogue.oracles import Autoregressive, Context
from trialogue.randomness import generator
from trialogue.samplers import generate, truncated

MODEL = small()


def uncached_pass(tokens: Tensor, window: int) -> Tensor:
    """Return log-probabilities (vocab,) after the last `window` of `tokens` (length,), without a cache."""
    inputs = torch.cat((torch.tensor([MODEL.bos]), tokens[max(0, len(tokens) - window) :]))
    return MODEL(inputs[None])[0, -1].log_softmax(-1).detach()


def largest_error(oracle: Cropped, window: int) -> float:
    tokens = torch.randint(0, 3, (40, 12), generator=generator(0, "tokens"))
    lengths = torch.randint(0, 13, (40,), generator=generator(0, "lengths"))
    found = oracle.next_log_probs(tokens, lengths)
    exact = torch.stack(
        [uncached_pass(row[:length], window) for row, length in zip(tokens, lengths.tolist(), strict=True)]
    )
    return float((found - exact).abs().max())


@pytest.mark.parametrize("window", [1, 2, 5, 11])
def test_cropped_oracle_uses_last_tokens_only(window):
    assert isinstance(Cropped(MODEL, window), Autoregressive)
    assert largest_error(Cropped(MODEL, window), window) < 1e-5
    assert largest_error(Cropped(MODEL, max(1, window - 1)), window) > 1e-2 or window == 1


def _use_first_tokens(self: Cropped, tokens: Tensor, lengths: Tensor) -> Tensor:
    return original(self, tokens, lengths.clamp_max(self.window))


def _skip_inverse_order(self: Cropped, tokens: Tensor, lengths: Tensor) -> Tensor:
    return original(self, tokens, lengths).sort(0).values


original = Cropped.next_log_probs


@pytest.mark.parametrize("broken", [_use_first_tokens, _skip_inverse_order])
def test_check_rejects_mutants(broken, monkeypatch):
    monkeypatch.setattr(Cropped, "next_log_probs", broken)
    assert largest_error(Cropped(MODEL, 3), 3) > 1e-2


def test_equal_contexts_are_evaluated_once(monkeypatch):
    opened: list[int] = []

    def open_and_record(rows: int, capacity: int) -> object:
        opened.append(rows)
        return type(MODEL).open(MODEL, rows, capacity)

    monkeypatch.setattr(MODEL, "open", open_and_record)
    tokens = torch.tensor([[0, 1, 2], [2, 1, 2], [1, 1, 2], [1, 2, 2]])
    Cropped(MODEL, 2).next_log_probs(tokens, torch.full((4,), 3))
    assert opened == [2]


def test_cropped_sequences_exceed_model_positions():
    assert MODEL.max_length is not None
    samples = generate(Endless(MODEL), [[0]], max_new_tokens=8)
    assert int(samples.lengths) == 9
    longer = generate(Endless(Cropped(MODEL, 4)), [[0]], max_new_tokens=50, num_samples=3)
    assert longer.lengths.tolist() == [51] * 3
    assert int(longer.tokens.max()) < 3
    assert torch.equal(
        longer.tokens, generate(Cropped(Endless(MODEL), 4), [[0]], max_new_tokens=50, num_samples=3).tokens
    )


def test_endless_oracle_renormalises_probabilities():
    tokens, rows = torch.tensor([[0, 1, 2, 0], [2, 2, 1, 1]]), torch.arange(2)
    stop = torch.tensor([4, 2])
    base, endless = MODEL.open(2, 4, (1,)), Endless(MODEL).open(2, 4, (1,))
    features = base.features(tokens, stop * 0, stop, rows)
    distribution = base.log_probs(features)[:, :3].softmax(1)
    log_probs = endless.log_probs(endless.features(tokens, stop * 0, stop, rows))
    torch.testing.assert_close(log_probs.exp(), distribution)
    torch.testing.assert_close(endless.hidden(features, 1), base.hidden(features, 1))
    forked = endless.fork(torch.tensor([1, 0]), 4)
    again = forked.features(tokens[[1, 0]], stop[[1, 0]], stop[[1, 0]], rows)
    torch.testing.assert_close(forked.log_probs(again), log_probs[[1, 0]])


def test_attributes_are_copied_from_base():
    class Known(Table):
        tokenization, batch_size = object(), 7

    base = Known(lambda _: [0.5, 0.3, 0.2], 3, eos=2)
    for oracle in (Cropped(base, 2), Endless(base), Endless(Cropped(base, 2)), Cropped(Endless(base), 2)):
        assert (oracle.tokenization, oracle.batch_size) == (base.tokenization, 7)
    assert Endless(MODEL).tokenization is None


def test_forward_passes_are_counted():
    class Halves:
        """Context that runs its network twice for every evaluation."""

        def __init__(self, base: Context) -> None:
            self.base, self.passes = base, 0
            self.log_probs, self.copy, self.hidden = base.log_probs, base.copy, base.hidden

        def features(self, *arguments: Tensor) -> Tensor:
            self.passes += 2
            return self.base.features(*arguments)

    class Twice(Table):
        def open(self, *arguments: Any) -> Any:
            return Halves(super().open(*arguments))

    twice = Twice(lambda _: [0.5, 0.3, 0.2], 3, eos=2)
    for oracle in (Endless(twice), truncated(Endless(truncated(twice, 0.7)), top_p=0.9)):
        assert generate(oracle, max_new_tokens=3).total.forward_passes == 6
    once = Table(lambda _: [0.5, 0.3, 0.2], 3, eos=2)
    assert generate(Endless(once), max_new_tokens=3).total.forward_passes == 3


def test_invalid_arguments_are_reported():
    for field, make in (
        ("window", lambda: Cropped(MODEL, 0)),
        ("window", lambda: Cropped(MODEL, 12)),
        ("eos", lambda: Endless(Endless(MODEL))),
        ("eos", lambda: Endless(tiny_oracle())),
    ):
        assert expect_error("", make).field == field
