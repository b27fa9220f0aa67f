"""Batch of sequences that samplers read and the engine updates, with its evaluations and caches."""

from trialogue.samplers.prefix.batch.batch import DEFAULT_MEMORY, Batch
from trialogue.samplers.prefix.batch.rows import SequenceStop, Stop, says
from trialogue.samplers.prefix.batch.view import View
from trialogue.samplers.prefix.batch.weighed import Children

__all__ = ["DEFAULT_MEMORY", "Batch", "Children", "SequenceStop", "Stop", "View", "says"]
