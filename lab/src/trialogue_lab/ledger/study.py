"""What a study is: one question, a config, rows measured part by part, and the claims that the rows decide."""

import dataclasses
import importlib
import importlib.util
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from trialogue.errors import InputError
from trialogue_lab.ledger.claims.claims import Claim
from trialogue_lab.ledger.claims.pilots import Pilot, read_pilot
from trialogue_lab.ledger.claims.statistics import Statistic
from trialogue_lab.ledger.claims.withdrawn import WithdrawnClaim, read_withdrawn
from trialogue_lab.ledger.pages.figures import Figure
from trialogue_lab.ledger.pages.tables import ResultTable
from trialogue_lab.ledger.question import question_of
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.runs.drafts import Row
from trialogue_lab.ledger.runs.results import PRESETS, Result, config_hash, config_values

Config = TypeVar("Config")

RESERVED = frozenset({"study", "preset", "results", "threads", "workers", "executor", "force", "help"})
"""Names that the command line keeps for itself; no config may have such a field."""


@dataclass(frozen=True)
class Part:
    """A unit that a killed run resumes by.

    `measure(artifacts)` yields its rows; `artifacts` is a folder that the parts of one run share, for trained models:
    a part must train anew what it does not find there. Parts of one `lane` are measured one after the other by one
    process, as parts that build on each other's artifacts should be; by default a part has a lane of its own.
    `columns` are those that every row of the part begins with, such as its seed.
    """

    name: str
    measure: Callable[[Path], Iterable[Row]]
    lane: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, artifacts: Path) -> list[Row]:
        """Measure the part: its rows, with its `columns`."""
        return [{**self.columns, **row} for row in self.measure(artifacts)]


_CONVENTIONS = {
    "presets": ("PRESETS", ("config",)),
    "parts": ("parts", ("measure",)),
    "claims": ("CLAIMS", ("claims",)),
    "numbers": ("NUMBERS", ("claims",)),
    "tables": ("TABLES", ("pages", "tables")),
    "figures": ("FIGURES", ("pages", "figures")),
}
"""The name that each field of a study has in its package, and the modules that may define it."""


@dataclass(frozen=True, kw_only=True)
class Study(Generic[Config]):
    """A study; the module that defines it binds it to the name `STUDY`. In a package, use `Study.of_package`.

    `module` is that module's `__name__`: the study is named after it, its docstring begins with the question, and its
    pilot is frozen beside it (`pilot_file`). `presets` maps names among `PRESETS` to values of one frozen
    dataclass, which raises `InputError` where a field is out of range; "default" must be among them. `parts(config)`
    lists what is measured, in order. `kind` is the column that says of which kind a row is. `numbers` are statistics
    that texts quote, by name. `version` is raised when the meaning of a row changes, so that older results no longer
    count. `headline` names the claims that the terminal prints first.
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
    headline: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise InputError("module", self.module, "must be named by lower-case words joined by underscores")
        if "default" not in self.presets or not set(self.presets) <= set(PRESETS):
            raise InputError("presets", sorted(self.presets), f"must hold 'default' and only {PRESETS}")
        config = self.presets["default"]
        if not dataclasses.is_dataclass(config) or isinstance(config, type):
            raise InputError("presets", config, "must be values of a frozen dataclass")
        taken = RESERVED & {field.name for field in dataclasses.fields(config)}
        if taken:
            raise InputError("config", sorted(taken), "these names belong to the command line: choose others")
        for claim in self.claims:
            claim.statistic.replication.required(config_values(config))
        for kind in ([claim.id for claim in self.claims], [figure.name for figure in self.figures]):
            if len(set(kind)) < len(kind):
                raise InputError("study", self.name, f"names must be unique, not {kind}")
        unknown = set(self.headline) - {claim.id for claim in self.claims}
        if unknown or len(set(self.headline)) < len(self.headline):
            raise InputError("headline", self.headline, "must name claims of the study, each once")

    @classmethod
    def of_package(cls, module: str, *, source: str, **settings: Any) -> "Study[Any]":
        """Return the study of the package `module`, assembled from the modules of the package.

        Args:
            module: The package's `__name__`.
            source: What the study replicates.
            **settings: Other fields of the study. A field that is given here is not looked up.

        The presets are `config.PRESETS`, the parts `measure.parts`, the claims `claims.CLAIMS` and the numbers
        `claims.NUMBERS`. Tables and figures are `TABLES` and `FIGURES` of `pages`, or of `tables` and `figures`. Only
        the presets and the parts are required. `titles.toml` maps ids of claims to their titles.
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
        settings["claims"] = _titled(settings.get("claims", ()), _file_of(module, "titles.toml"))
        return cls(module=module, source=source, **settings)

    @property
    def name(self) -> str:
        """The last part of the module's name, its words joined by dashes."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def question(self) -> str:
        """The first paragraph of the module's docstring, on one line."""
        return question_of(self._doc)

    @property
    def background(self) -> str:
        """What the module's docstring says after the question."""
        return self._doc.strip().partition("\n\n")[2].strip()

    @property
    def pilot_file(self) -> Path:
        """Path of the frozen pilot: `pilot.json` in a package, `name.pilot.json` next to a module `name.py`."""
        return _file_of(self.module, "pilot.json")

    @cached_property
    def pilot(self) -> Pilot:
        """The estimates of the study's pilot. Empty if it has none."""
        return read_pilot(self.pilot_file)

    @cached_property
    def withdrawn(self) -> tuple[WithdrawnClaim, ...]:
        """The claims that the study no longer makes, read from `withdrawn.json` next to `pilot.json`."""
        return read_withdrawn(_file_of(self.module, "withdrawn.json"))

    def preset(self, name: str) -> Config:
        """The config of a preset; raises `InputError` for an unknown one."""
        if name not in self.presets:
            raise InputError("preset", name, f"choose one of {', '.join(self.presets)}")
        return self.presets[name]

    def preset_of(self, config: Config) -> str | None:
        """The preset that `config` equals, if any."""
        return next((name for name, preset in self.presets.items() if preset == config), None)

    def result_folder(self, config: Config, results: str | Path = "runs") -> Path:
        """Where the result of `config` lies under `results`."""
        return Path(results) / self.name / config_hash(self.name, self.version, config_values(config))

    def rows(self, result: Result) -> Rows:
        """The rows of one of its results, by kind."""
        return Rows(result.records, self.kind, result.config)

    @property
    def _doc(self) -> str:
        return sys.modules[self.module].__doc__ or ""


def _file_of(module: str, name: str) -> Path:
    """Return the path of a file that belongs to a study: inside its package, or next to its module."""
    loaded = sys.modules[module]
    path = Path(str(loaded.__file__))
    return path.parent / name if hasattr(loaded, "__path__") else path.with_suffix(f".{name}")


def _titled(claims: Sequence[Claim], path: Path) -> Sequence[Claim]:
    """Return the claims with the titles that the file at `path` gives them. Without such a file, the claims as given.

    Raises:
        InputError: If the file cannot be read or names a claim that the study does not make.
    """
    if not path.is_file():
        return claims
    try:
        titles = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("titles", str(path), f"cannot be read: {error}") from error
    unknown = titles.keys() - {claim.id for claim in claims}
    if unknown:
        raise InputError("titles", sorted(unknown), f"{path}: use ids of claims of the study")
    return [dataclasses.replace(claim, title=titles.get(claim.id, claim.title)) for claim in claims]


def study_of(module: str) -> Study[Any]:
    """The study that the importable `module` binds to `STUDY`; raises `InputError` where it binds none."""
    study: Study[Any] | None = getattr(importlib.import_module(module), "STUDY", None)
    if study is None:
        raise InputError("study", module, "this module does not bind STUDY")
    return study
