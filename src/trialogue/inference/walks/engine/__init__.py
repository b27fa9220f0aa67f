"""The engine: runs any walk on any oracle, all rows as one batch, and counts what it cost."""

from trialogue.inference.walks.engine.open_run import Drawn, Growing, OpenRun, Submission, Terms
from trialogue.inference.walks.engine.run import generate, rows_at_once
from trialogue.inference.walks.engine.running import Observer
from trialogue.inference.walks.engine.sample_stream import SampleStream, stream

__all__ = [
    "Drawn",
    "Growing",
    "Observer",
    "OpenRun",
    "SampleStream",
    "Submission",
    "Terms",
    "generate",
    "rows_at_once",
    "stream",
]
