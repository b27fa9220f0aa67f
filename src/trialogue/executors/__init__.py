"""Executors, which distribute independent work over processes of this machine or over a Ray cluster."""

from trialogue.executors.executor import Crew, Executor, Start
from trialogue.executors.registered import EXECUTORS, executor_of

__all__ = ["EXECUTORS", "Crew", "Executor", "Start", "executor_of"]
