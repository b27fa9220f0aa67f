"""Rows of a benchmark: one number a line, from which README takes what it says about speed."""

import json
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

    def write(self) -> None:
        """Write the rows, each a line of JSON."""
        FOLDER.mkdir(exist_ok=True)
        self._path.write_text("".join(f"{json.dumps(row)}\n" for row in self._rows), encoding="utf-8")
        print(f"rows: {self._path}")
