"""Memory and time of a run: allocation, rejected sizes, and the clock of samples."""

from types import SimpleNamespace

import pytest
import torch

from refusals import expect_error
from trialogue import generate, stream
from trialogue.data import Table
from trialogue.errors import InputError
from trialogue.models.hub import memory
from trialogue.samplers import Backtracking, Rejection
from trialogue.samplers.prefix.engine import clock as clocks
from trialogue.samplers.prefix.engine import run as engine
from trialogue.samplers.prefix.engine.clock import Clock

ENDLESS = Table(lambda _: (0.5, 0.5), 2)


@pytest.mark.parametrize(
    "sampler", [None, Rejection(), Backtracking(2)], ids=["ancestral", "rejection", "backtracking"]
)
def test_few_steps_need_no_memory_for_a_long_completion(sampler, monkeypatch):
    opened = []
    batch = engine.Batch

    def record(oracle: object, rows: int, capacity: int, **settings: object) -> object:
        opened.append(capacity)
        assert capacity < 100, "this would be allocated for every row"
        return batch(oracle, rows, capacity, **settings)

    monkeypatch.setattr(engine, "Batch", record)
    verifier = None if sampler is None else lambda prefix: float(len(prefix) < 2 or prefix[0] != prefix[1])
    settings = {"sampler": sampler, "verifier": verifier, "max_steps": 3, "num_samples": 4, "seed": 1}
    far = generate(ENDLESS, [[0], [1, 1]], max_new_tokens=10**9, **settings)
    near = generate(ENDLESS, [[0], [1, 1]], max_new_tokens=50, **settings)
    assert opened == [5, 5]
    assert torch.equal(far.lengths, near.lengths)
    assert torch.equal(far.tokens, near.tokens)
    assert set(far.stopped) == {"max_steps"}


def test_a_run_larger_than_memory_is_rejected_with_a_bound(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 4 << 30)
    for run in (generate, stream):
        with pytest.raises(
            InputError, match=r"^num_samples=100000000000: needs .* 4.0 GiB are free. Use at most \d+$"
        ):
            run(ENDLESS, max_new_tokens=3, num_samples=10**11)
        # A row stores four numbers of 8 bytes per token.
        most = (4 << 30) // (4 * 8)
        with pytest.raises(InputError, match=rf"^max_new_tokens=100000000000: needs .* Use at most {most}$"):
            run(ENDLESS, max_new_tokens=10**11)
        # The error reports the argument even if the steps limit the length further.
        with pytest.raises(InputError, match=r"^max_new_tokens=100000000000: needs .* Use at most \d+$"):
            run(ENDLESS, max_new_tokens=10**11, max_steps=10**10)
        expect_error(r"^max_new_tokens=1e|^max_new_tokens=1000", run, ENDLESS, max_new_tokens=10**30)


def test_small_runs_do_not_query_the_free_memory(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: pytest.fail("looked"))
    assert generate(ENDLESS, max_new_tokens=3, num_samples=100).lengths.tolist() == [3] * 100


def test_a_clock_divides_each_second_among_running_samples(monkeypatch):
    times = iter([10.0, 14.0, 15.0, 21.0])
    monkeypatch.setattr(clocks, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    clock = Clock()
    clock.tick(4)
    assert clock.seconds == 1
    clock.tick(1)
    assert clock.seconds == 2
    assert clock.elapsed == 11
