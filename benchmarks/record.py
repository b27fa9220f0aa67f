"""Store the results of benchmarks, one number per row, for the tables in README and the documentation."""

import json
from collections.abc import Callable
from pathlib import Path

from trialogue.storage import atomic_write

FOLDER = Path(__file__).parent / "rows"


class Record:
    """Results of one run of a benchmark."""

    def __init__(self, benchmark: str) -> None:
        self._path = FOLDER / f"{benchmark}.jsonl"
        self._rows: list[dict[str, object]] = []

    def add(self, contender: str, value: float, **setting: object) -> None:
        """Add one number of a contender with its settings."""
        self._rows.append({"contender": contender, **setting, "value": value})

    def write(self, keep: Callable[[dict[str, object]], bool] = lambda _: False) -> None:
        """Write the rows as lines of JSON, followed by the rows of the previous run for which `keep` returns True."""
        FOLDER.mkdir(exist_ok=True)
        if self._path.is_file():
            lines = self._path.read_text(encoding="utf-8").splitlines()
            self._rows += filter(keep, map(json.loads, lines))
        atomic_write(self._path, "".join(f"{json.dumps(row)}\n" for row in self._rows))
        print(f"rows: {self._path}")
