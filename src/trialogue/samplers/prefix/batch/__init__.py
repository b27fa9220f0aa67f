"""The batch that samplers see and the engine moves: sequences, what is evaluated of them, and what is remembered."""

from trialogue.samplers.prefix.batch.batch import DEFAULT_MEMORY, Batch
from trialogue.samplers.prefix.batch.rows import SequenceStop, Stop, says
from trialogue.samplers.prefix.batch.view import View
from trialogue.samplers.prefix.batch.weighed import Children

__all__ = ["DEFAULT_MEMORY", "Batch", "Children", "SequenceStop", "Stop", "View", "says"]
