"""Studies: experiments that test the claims of a publication."""

import dataclasses
import importlib
import importlib.util
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from trialogue.errors import InputError
from trialogue_lab.ledger.claims.claims import Claim
from trialogue_lab.ledger.claims.pilots import Pilot, read_pilot
from trialogue_lab.ledger.claims.statistics import Statistic
from trialogue_lab.ledger.claims.withdrawn import WithdrawnClaim, read_withdrawn
from trialogue_lab.ledger.pages.figures import Figure
from trialogue_lab.ledger.pages.tables import ResultTable
from trialogue_lab.ledger.question import first_paragraph
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.runs.drafts import Row
from trialogue_lab.ledger.runs.results import PRESETS, Result, config_hash, config_values

Config = TypeVar("Config")

RESERVED = frozenset({"study", "preset", "results", "threads", "workers", "executor", "force", "help"})
"""Names of command-line options, which config fields must not use."""

MeasuredRows = Iterator[dict[str, Any]]
"""The rows that a part of a run yields, one mapping from column to value per measurement."""


@dataclass(frozen=True)
class Part:
    """A task of a run ("part"), whose measurements are saved when it finishes.

    An interrupted run resumes after its last finished task.

    Args:
        name: Name of the task, unique within the run.
        measure: Generator function of measurements. Its argument is a folder of files shared by all tasks, for example
            trained models. A task must train each model that the folder lacks.
        lane: Name of a chain of tasks that one process runs in order. Put tasks that use each other's files into one
            lane. By default, each task has a lane of its own.
        columns: Constant columns with which every row begins, for example the seed.
    """

    name: str
    measure: Callable[[Path], Iterable[Row]]
    lane: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, artifacts: Path) -> list[Row]:
        """Run the task and return its measurements, including the constant columns."""
        return [{**self.columns, **row} for row in self.measure(artifacts)]


def parts_by_seed(
    config: Any, seeds: Iterable[int], **measures: Callable[[Any, int, Path], Iterable[Row]]
) -> list[Part]:
    """Return one task of a run (`Part`) per seed and function. Its rows begin with the seed.

    Args:
        config: Config of the run.
        seeds: Seeds.
        **measures: Functions by name. Each receives the config, a seed and the folder of shared files, and yields
            measurements. Its tasks are named "<name>-<seed>".
    """
    return [
        Part(f"{name}-{seed}", partial(measure, config, seed), columns={"seed": seed})
        for seed in seeds
        for name, measure in measures.items()
    ]


_CONVENTIONS = {
    "presets": ("PRESETS", ("config",)),
    "parts": ("parts", ("measure",)),
    "claims": ("CLAIMS", ("claims",)),
    "numbers": ("NUMBERS", ("claims",)),
    "tables": ("TABLES", ("pages", "tables")),
    "figures": ("FIGURES", ("pages", "figures")),
}
"""For each field of a study, the variable that defines it and the modules searched for it."""


@dataclass(frozen=True, kw_only=True)
class Study(Generic[Config]):
    """An experiment that tests the claims of a publication.

    Assign the study to the name `STUDY` of its module. If the study is a package, create it with `Study.of_package`.

    Args:
        module: The `__name__` of the module that defines the study. It determines the name of the study, and the
            docstring of the module begins with the question of the study.
        source: The publication that is replicated.
        presets: Configs by name. Allowed names are in `PRESETS`, and "default" is required. All configs are instances
            of one frozen dataclass that raises `InputError` if a field is out of range.
        parts: Function from a config to the tasks of a run, in order.
        claims: Claims that the measurements decide.
        tables: Tables of the report.
        figures: Figures of the report.
        numbers: Statistics by name, which templates of the documentation can print.
        answer: One sentence that answers the question, from the committed result.
        glossary: Meanings of symbols and technical terms in the titles of the claims, by term.
        kind: Column that holds the kind of a measurement (default: "kind").
        version: Increase it when the meaning of a measurement changes. Results of earlier versions no longer count.
    """

    module: str
    source: str
    presets: Mapping[str, Config]
    parts: Callable[[Config], Sequence[Part]]
    claims: Sequence[Claim] = ()
    tables: Sequence[ResultTable] = ()
    figures: Sequence[Figure] = ()
    numbers: Mapping[str, Statistic] = field(default_factory=dict)
    answer: str = ""
    glossary: Mapping[str, str] = field(default_factory=dict)
    kind: str = "kind"
    version: int = 1

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise InputError("module", self.module, "use lower-case words joined by underscores")
        if "default" not in self.presets or not set(self.presets) <= set(PRESETS):
            raise InputError(
                "presets", sorted(self.presets), f"include 'default', and use only names from {PRESETS}"
            )
        config = self.presets["default"]
        if not dataclasses.is_dataclass(config) or isinstance(config, type):
            raise InputError("presets", config, "use values of a frozen dataclass")
        taken = RESERVED & {field.name for field in dataclasses.fields(config)}
        if taken:
            hint = "these are options of the command line: rename the fields"
            raise InputError("config", sorted(taken), hint)
        for claim in self.claims:
            claim.statistic.replication.required(config_values(config))
        for kind in ([claim.id for claim in self.claims], [figure.name for figure in self.figures]):
            if len(set(kind)) < len(kind):
                raise InputError("study", self.name, f"use each name once: {kind}")

    @classmethod
    def of_package(cls, module: str, *, source: str, **settings: Any) -> "Study[Any]":
        """Create a study from the modules of a package.

        The presets are `config.PRESETS` and the tasks of a run `measure.parts`. Optional are `claims.CLAIMS`,
        `claims.NUMBERS`, the tables and figures (`TABLES` and `FIGURES` in `pages`, or in `tables` and `figures`), and
        `titles.toml` with titles by claim id. In this file, `answer` answers the question of the study, the table
        `measured` states what a measured number is, by claim id, and the table `glossary` explains terms of the titles.

        Args:
            module: The `__name__` of the package.
            source: The publication that is replicated.
            **settings: Fields of the study that replace the values found in the modules.

        Raises:
            InputError: The presets or the tasks are missing, or a field of the study is invalid.
        """
        for field_name, (name, places) in _CONVENTIONS.items():
            modules = (f"{module}.{place}" for place in places)
            found = [each for each in modules if importlib.util.find_spec(each) is not None]
            defined = [each for each in map(importlib.import_module, found) if hasattr(each, name)]
            if field_name not in settings and defined:
                settings[field_name] = getattr(defined[0], name)
        missing = {"presets", "parts"} - settings.keys()
        if missing:
            place = " and ".join(f"{module}.{_CONVENTIONS[each][1][0]}" for each in sorted(missing))
            raise InputError("study", module, f"define {' and '.join(sorted(missing))} in {place}")
        titles = _read_titles(_find_file(module, "titles.toml"), settings.get("claims", ()))
        return cls(module=module, source=source, **(titles | settings | {"claims": titles["claims"]}))

    @property
    def name(self) -> str:
        """Name of the study: last component of the module's name, with dashes for underscores."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def question(self) -> str:
        """First paragraph of the module's docstring, on one line."""
        return first_paragraph(self._doc)

    @property
    def background(self) -> str:
        """The module's docstring after the first paragraph."""
        return self._doc.strip().partition("\n\n")[2].strip()

    @property
    def pilot_file(self) -> Path:
        """Path of the pilot estimates: `pilot.json` in a package, `name.pilot.json` next to `name.py`."""
        return _find_file(self.module, "pilot.json")

    @cached_property
    def pilot(self) -> Pilot:
        """Estimates of a small trial run, for the statistical power. Empty if the file does not exist."""
        return read_pilot(self.pilot_file)

    @cached_property
    def withdrawn(self) -> tuple[WithdrawnClaim, ...]:
        """Claims that the study no longer makes, from `withdrawn.json` next to the pilot."""
        return read_withdrawn(_find_file(self.module, "withdrawn.json"))

    def preset(self, name: str) -> Config:
        """Return the config with the given name.

        Raises:
            InputError: The study has no such preset.
        """
        if name not in self.presets:
            raise InputError("preset", name, f"choose one of {', '.join(self.presets)}")
        return self.presets[name]

    def preset_of(self, config: Config) -> str | None:
        """Return the name of the preset equal to `config`, or None."""
        return next((name for name, preset in self.presets.items() if preset == config), None)

    def result_folder(self, config: Config, results: str | Path = "runs") -> Path:
        """Return the folder in which the result of a config is stored.

        Args:
            config: The config.
            results: Folder of all results (default: "runs").
        """
        return Path(results) / self.name / config_hash(self.name, self.version, config_values(config))

    def rows(self, result: Result) -> Rows:
        """Return the measurements of a result, grouped by kind."""
        return Rows(result.records, self.kind, result.config)

    @property
    def _doc(self) -> str:
        return sys.modules[self.module].__doc__ or ""


def _find_file(module: str, name: str) -> Path:
    """Return the path of a study's file, inside its package or next to its module."""
    loaded = sys.modules[module]
    path = Path(str(loaded.__file__))
    return path.parent / name if hasattr(loaded, "__path__") else path.with_suffix(f".{name}")


def _read_titles(path: Path, claims: Sequence[Claim]) -> dict[str, Any]:
    """Return the fields `claims`, `answer` and `glossary`, with titles and texts from the file `path` if it exists."""
    if not path.is_file():
        return {"claims": claims}
    try:
        titles = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("titles", str(path), f"cannot be read: {error}") from error
    answer = titles.pop("answer", "")
    measured, glossary = (titles.pop(name, {}) for name in ("measured", "glossary"))
    unknown = (titles.keys() | measured.keys()) - {claim.id for claim in claims}
    if unknown:
        raise InputError("titles", sorted(unknown), f"use ids of claims of the study in {path}")
    return {
        "answer": answer,
        "glossary": glossary,
        "claims": [
            dataclasses.replace(
                claim,
                title=titles.get(claim.id, claim.title),
                measured=measured.get(claim.id, claim.measured),
            )
            for claim in claims
        ],
    }


def load_study(module: str) -> Study[Any]:
    """Import a module and return the study that it defines.

    Args:
        module: Name of a module that assigns a study to `STUDY`.

    Raises:
        InputError: The module does not define `STUDY`.
    """
    study: Study[Any] | None = getattr(importlib.import_module(module), "STUDY", None)
    if study is None:
        raise InputError("study", module, "this module does not bind STUDY: assign the study to this name")
    return study
