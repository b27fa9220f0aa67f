"""Studies: a question, a config, measurements in parts, and the claims that the measurements decide."""

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
"""Options of the command line, which no config field may be named after."""

MeasuredRows = Iterator[dict[str, Any]]
"""The rows that a part of a run yields, one mapping from column to value per measurement."""


@dataclass(frozen=True)
class Part:
    """A part of a run, whose rows are saved when it finishes. An interrupted run resumes after its last finished part.

    Args:
        name: Name of the part, unique within the run.
        measure: Function that yields the rows. Its argument is a folder of artifacts, for example trained models, that
            all parts of a run share. A part must train each model that is missing in the folder.
        lane: Name of a chain of parts that one process measures in order. Put parts that use each other's artifacts
            into one lane. Empty for a lane of the part's own.
        columns: Columns with a constant value that every row begins with, for example the seed.
    """

    name: str
    measure: Callable[[Path], Iterable[Row]]
    lane: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, artifacts: Path) -> list[Row]:
        """Measure the part and return its rows, including the constant columns."""
        return [{**self.columns, **row} for row in self.measure(artifacts)]


def parts_by_seed(
    config: Any, seeds: Iterable[int], **measures: Callable[[Any, int, Path], Iterable[Row]]
) -> list[Part]:
    """Return one part per seed and function, whose rows begin with the seed.

    Args:
        config: Settings of the run.
        seeds: Seeds.
        **measures: Functions by name. Each receives the settings, a seed and the folder of artifacts, and yields rows
            of measurements. Its parts are named "<name>-<seed>".
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
"""For each field of a study, the name that defines it in the package and the modules that are searched for it."""


@dataclass(frozen=True, kw_only=True)
class Study(Generic[Config]):
    """A study. The module that defines it assigns it to the name `STUDY`. In a package, use `Study.of_package`.

    Args:
        module: The `__name__` of that module. The study is named after it, and its docstring begins with the question
            of the study. The pilot is stored next to it (see `pilot_file`).
        source: The publication that the study replicates.
        presets: Configs by name, which must include "default". The names are from `PRESETS`. All configs are values of
            one frozen dataclass, which raises `InputError` if a field is out of range.
        parts: Function that returns the parts of a run with the given config, in order.
        claims: The claims that the rows decide.
        tables: The tables of the report.
        figures: The figures of the report.
        numbers: Statistics that documentation templates quote, by name.
        kind: The column that holds the kind of a row (default: "kind").
        version: Increase it when the meaning of a row changes. Results of earlier versions no longer count.
    """

    module: str
    source: str
    presets: Mapping[str, Config]
    parts: Callable[[Config], Sequence[Part]]
    claims: Sequence[Claim] = ()
    tables: Sequence[ResultTable] = ()
    figures: Sequence[Figure] = ()
    numbers: Mapping[str, Statistic] = field(default_factory=dict)
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
        """Assemble a study from the modules of the package `module`.

        The presets are `config.PRESETS`, the parts `measure.parts`, the claims `claims.CLAIMS` and the numbers
        `claims.NUMBERS`. Tables and figures are `TABLES` and `FIGURES` of `pages`, or of `tables` and `figures`. Only
        the presets and the parts are required. The file `titles.toml` maps ids of claims to their titles.

        Args:
            module: The `__name__` of the package.
            source: The publication that the study replicates.
            **settings: Other fields of the study, which are then not taken from the modules.

        Raises:
            InputError: The presets or the parts are missing, or a field of the study is invalid.
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
        settings["claims"] = _add_titles(settings.get("claims", ()), _file_of(module, "titles.toml"))
        return cls(module=module, source=source, **settings)

    @property
    def name(self) -> str:
        """Name of the study: the last component of the module's name, with dashes for underscores."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def question(self) -> str:
        """The first paragraph of the module's docstring, on one line."""
        return first_paragraph(self._doc)

    @property
    def background(self) -> str:
        """The module's docstring after the question."""
        return self._doc.strip().partition("\n\n")[2].strip()

    @property
    def pilot_file(self) -> Path:
        """Path of the stored pilot: `pilot.json` in a package, `name.pilot.json` next to a module `name.py`."""
        return _file_of(self.module, "pilot.json")

    @cached_property
    def pilot(self) -> Pilot:
        """The stored pilot of the study. Empty if the file does not exist."""
        return read_pilot(self.pilot_file)

    @cached_property
    def withdrawn(self) -> tuple[WithdrawnClaim, ...]:
        """The claims that the study no longer makes, read from `withdrawn.json` next to the pilot."""
        return read_withdrawn(_file_of(self.module, "withdrawn.json"))

    def preset(self, name: str) -> Config:
        """Return the config of a preset.

        Raises:
            InputError: The study has no such preset.
        """
        if name not in self.presets:
            raise InputError("preset", name, f"choose one of {', '.join(self.presets)}")
        return self.presets[name]

    def preset_of(self, config: Config) -> str | None:
        """Return the name of the preset whose config is equal to `config`, or None if there is none."""
        return next((name for name, preset in self.presets.items() if preset == config), None)

    def result_folder(self, config: Config, results: str | Path = "runs") -> Path:
        """Return the folder of the result of a config.

        Args:
            config: The config.
            results: Folder of all results (default: "runs").
        """
        return Path(results) / self.name / config_hash(self.name, self.version, config_values(config))

    def rows(self, result: Result) -> Rows:
        """Return the rows of a result of this study, grouped by kind of measurement."""
        return Rows(result.records, self.kind, result.config)

    @property
    def _doc(self) -> str:
        return sys.modules[self.module].__doc__ or ""


def _file_of(module: str, name: str) -> Path:
    """Return the path of a file of a study, which is inside its package or next to its module."""
    loaded = sys.modules[module]
    path = Path(str(loaded.__file__))
    return path.parent / name if hasattr(loaded, "__path__") else path.with_suffix(f".{name}")


def _add_titles(claims: Sequence[Claim], path: Path) -> Sequence[Claim]:
    """Return the claims with the titles in the file `path`, if it exists."""
    if not path.is_file():
        return claims
    try:
        titles = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("titles", str(path), f"cannot be read: {error}") from error
    unknown = titles.keys() - {claim.id for claim in claims}
    if unknown:
        raise InputError("titles", sorted(unknown), f"use ids of claims of the study in {path}")
    return [dataclasses.replace(claim, title=titles.get(claim.id, claim.title)) for claim in claims]


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
