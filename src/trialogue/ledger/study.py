"""What a study is: one question, a config, rows measured part by part, and the claims that the rows decide."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from trialogue.errors import InputError, whole_number
from trialogue.ledger.claims import Claim
from trialogue.ledger.drafts import Row
from trialogue.ledger.figures import Figure
from trialogue.ledger.question import question_of
from trialogue.ledger.results import PRESETS, config_hash, config_values
from trialogue.ledger.tables import Table

Config = TypeVar("Config")

RESERVED = frozenset({"study", "preset", "results", "threads", "workers", "force", "help"})
"""Names that the command line keeps for itself; no config may have such a field."""


def require_seeds(field: str, seeds: Sequence[int]) -> None:
    """Raise `InputError` unless the `seeds` of a config are one or more different whole numbers of at least 0."""
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(field, seeds, "give one or more different seeds")
    for seed in seeds:
        whole_number(field, seed, 0)


@dataclass(frozen=True, kw_only=True)
class Study(Generic[Config]):
    """A study; the module that defines it binds it to the name `STUDY`.

    `doc` is the module's docstring, whose first paragraph is the question. `presets` maps "smoke" (seconds),
    "default" (minutes on two cores) and "paper" (the published scale) to values of one frozen dataclass,
    which raises `InputError` where a field is out of range. `parts(config)` names the units that a killed run
    resumes by, in the order they run; `run(config, part, artifacts)` measures one part and yields its rows.
    `artifacts` is a folder that the parts of one run share, for trained models; a part must train anew what
    it does not find there. Parts of one `lane(part)` are measured one after the other by one process, as parts that
    build on each other's artifacts should be; every part has its own lane where the study says nothing. `version`
    is raised when the meaning of a row changes, so that older results no longer count.
    """

    name: str
    doc: str | None
    source: str
    version: int
    presets: Mapping[str, Config]
    parts: Callable[[Config], Sequence[str]]
    run: Callable[[Config, str, Path], Iterable[Row]]
    lane: Callable[[str], str] = field(default=lambda part: part)
    claims: Sequence[Claim] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise InputError("name", self.name, "must be lower-case words joined by dashes")
        if "default" not in self.presets or not set(self.presets) <= set(PRESETS):
            raise InputError("presets", sorted(self.presets), f"must hold 'default' and only {PRESETS}")
        config = self.presets["default"]
        if not dataclasses.is_dataclass(config) or isinstance(config, type):
            raise InputError("presets", config, "must be values of a frozen dataclass")
        taken = RESERVED & {field.name for field in dataclasses.fields(config)}
        if taken:
            raise InputError("config", sorted(taken), "these names belong to the command line: choose others")
        for kind in ([claim.id for claim in self.claims], [figure.name for figure in self.figures]):
            if len(set(kind)) < len(kind):
                raise InputError("study", self.name, f"names must be unique, not {kind}")

    @property
    def question(self) -> str:
        """The first paragraph of `doc`, on one line."""
        return question_of(self.doc)

    @property
    def background(self) -> str:
        """What `doc` says after the question."""
        return (self.doc or "").strip().partition("\n\n")[2].strip()

    def preset(self, name: str) -> Config:
        """The config of a preset; raises `InputError` for an unknown one."""
        if name not in self.presets:
            raise InputError("preset", name, f"choose one of {', '.join(self.presets)}")
        return self.presets[name]

    def preset_of(self, config: Config) -> str | None:
        """The preset that `config` equals, if any."""
        return next((name for name, preset in self.presets.items() if preset == config), None)

    def folder(self, config: Config, results: str | Path = "results") -> Path:
        """Where the result of `config` lies under `results`."""
        return Path(results) / self.name / config_hash(self.name, self.version, config_values(config))
