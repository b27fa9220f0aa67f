"""The engine: runs any walk on any oracle, all rows as one batch, and counts what it cost."""

from trialogue.inference.walks.engine.run import Observer, generate, rows_at_once

__all__ = ["Observer", "generate", "rows_at_once"]
