"""Parts of the sampling engine."""

from types import SimpleNamespace

from trialogue.samplers.prefix.engine import clock as clocks
from trialogue.samplers.prefix.engine.clock import Clock


def test_a_clock_divides_each_second_among_running_samples(monkeypatch):
    times = iter([10.0, 14.0, 15.0, 21.0])
    monkeypatch.setattr(clocks, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    clock = Clock()
    clock.tick(4)
    assert clock.seconds == 1
    clock.tick(1)
    assert clock.seconds == 2
    assert clock.elapsed == 11
