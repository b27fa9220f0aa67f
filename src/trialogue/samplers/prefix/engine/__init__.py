"""Engine that runs any sampler on any model, with all sequences in one batch, and counts the costs."""

from trialogue.samplers.prefix.engine.open_run import (
    FinishedSamples,
    OpenRun,
    PartialSample,
    Submission,
)
from trialogue.samplers.prefix.engine.rounds import PromptRounds, SharedState
from trialogue.samplers.prefix.engine.run import choose_batch_size, generate
from trialogue.samplers.prefix.engine.running import RunObserver
from trialogue.samplers.prefix.engine.sample_stream import SampleStream, stream
from trialogue.samplers.prefix.engine.terms import Terms

__all__ = [
    "FinishedSamples",
    "OpenRun",
    "PartialSample",
    "PromptRounds",
    "RunObserver",
    "SampleStream",
    "SharedState",
    "Submission",
    "Terms",
    "choose_batch_size",
    "generate",
    "stream",
]
