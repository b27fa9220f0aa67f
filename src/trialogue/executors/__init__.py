"""Where work is done that falls into independent parts: this machine's processes, or a Ray cluster."""

from trialogue.executors.executor import Crew, Executor, Start
from trialogue.executors.registered import EXECUTORS, executor_of

__all__ = ["EXECUTORS", "Crew", "Executor", "Start", "executor_of"]
