"""Batch of sequences that a sampler extends, with cached model evaluations."""

from trialogue.samplers.prefix.batch.batch import DEFAULT_MEMORY, Batch
from trialogue.samplers.prefix.batch.children_cache import Children
from trialogue.samplers.prefix.batch.rows import SequenceStop, Stop, is_stopped
from trialogue.samplers.prefix.batch.view import View

__all__ = ["DEFAULT_MEMORY", "Batch", "Children", "SequenceStop", "Stop", "View", "is_stopped"]
