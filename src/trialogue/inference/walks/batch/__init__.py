"""The batch that walks see and the engine moves: sequences, what is evaluated of them, and what is remembered."""

from trialogue.inference.walks.batch.batch import DEFAULT_MEMORY, Batch, View
from trialogue.inference.walks.batch.rows import SequenceStop, Stop, says
from trialogue.inference.walks.batch.weighed import Children

__all__ = ["DEFAULT_MEMORY", "Batch", "Children", "SequenceStop", "Stop", "View", "says"]
