"""Rows of a benchmark: one number a line, from which README takes what it says about speed."""

import json
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent / "rows"


class Record:
    """Collects the numbers of one run; `write` replaces those of the run before."""

    def __init__(self, benchmark: str) -> None:
        self._path = FOLDER / f"{benchmark}.jsonl"
        self._rows: list[dict[str, object]] = []

    def add(self, contender: str, value: float, **setting: object) -> None:
        """Keep one number of a contender, and the setting that it is of."""
        self._rows.append({"contender": contender, **setting, "value": value})

    def write(self, keep: Callable[[dict[str, object]], bool] = lambda _: False) -> None:
        """Write the rows, each a line of JSON, and behind them those of the run before that are to `keep`."""
        FOLDER.mkdir(exist_ok=True)
        if self._path.is_file():
            lines = self._path.read_text(encoding="utf-8").splitlines()
            self._rows += filter(keep, map(json.loads, lines))
        self._path.write_text("".join(f"{json.dumps(row)}\n" for row in self._rows), encoding="utf-8")
        print(f"rows: {self._path}")
