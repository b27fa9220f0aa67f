"""Executors run independent tasks in parallel, in processes of this machine or on a Ray cluster."""

from trialogue.executors.executor import Executor, Start, Workers
from trialogue.executors.registered import EXECUTORS, make_executor

__all__ = ["EXECUTORS", "Executor", "Start", "Workers", "make_executor"]
