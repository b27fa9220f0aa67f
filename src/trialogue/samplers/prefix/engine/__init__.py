"""Engine that runs any sampler on any oracle with all rows as one batch, and counts the costs."""

from trialogue.samplers.prefix.engine.open_run import FinishedSamples, Growing, OpenRun, Submission, Terms
from trialogue.samplers.prefix.engine.rounds import PromptRounds, SharedState
from trialogue.samplers.prefix.engine.run import generate, rows_at_once
from trialogue.samplers.prefix.engine.running import RunObserver
from trialogue.samplers.prefix.engine.sample_stream import SampleStream, stream

__all__ = [
    "FinishedSamples",
    "Growing",
    "OpenRun",
    "PromptRounds",
    "RunObserver",
    "SampleStream",
    "SharedState",
    "Submission",
    "Terms",
    "generate",
    "rows_at_once",
    "stream",
]
