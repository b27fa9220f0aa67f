"""What `trialogue distribution` is asked for: every option is a field here, and its help the field's docstring."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from trialogue.errors import InputError
from trialogue.generation.settings import SamplerSettings
from trialogue.generation.verifier_specs import Rule
from trialogue.storage import require_folder
from trialogue.validation import Count, validated

FORMS = ("svg", "png")


@dataclass(frozen=True)
class Source:
    """The oracle, one of three, and the prompt that it continues."""

    table: Annotated[str | None, arg(metavar="FILE")] = None
    """JSON: {"tokens": ["a", "b", "."], "eos": ".", "distribution": {"": [0.5, 0.5, 0], "a b": {"b": 0.9, ".": 0.1}},
    "otherwise": [...]}: the probabilities of the next token by prefix, its tokens separated by spaces; "eos" and
    "otherwise", for all other prefixes, may be left out."""
    distribution: Annotated[str | None, arg(metavar="NAME[:JSON]")] = None
    """A structured distribution with its arguments: dyck:{"length": 6}, uniform:{"tokens": ["0", "1"]},
    semiprimes:{"digits": 1}, primes:{"digits": 2}."""
    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """A language model: hub id, folder, GGUF file, or a name of `trialogue models list`. A tiny one: every token of its
    vocabulary that the rule allows is a branch."""
    prompt: Annotated[str, arg(metavar="TEXT")] = ""
    """Continue this text."""

    def __post_init__(self) -> None:
        given = [name for name in ("table", "distribution", "model") if getattr(self, name) is not None]
        if len(given) != 1:
            value = None if not given else getattr(self, given[1])
            hint = "give one oracle: --table FILE, --distribution NAME or --model MODEL"
            raise InputError(given[1] if given else "table", value, hint)


@validated
@dataclass(frozen=True)
class ExactSampling(SamplerSettings):
    """The sampler; what is cut off is cut from its distribution only, not from the one that it is held against."""

    max_new_tokens: Annotated[Count | None, arg(metavar="N")] = None
    """Stop after this many tokens (the maximum length of the oracle, if it has one)."""
    values: Annotated[str | None, arg(metavar="exact|FILE")] = None
    """Guide a sampler that uses values by exact values (the probability that a prefix becomes a text that the verifier
    accepts), or by the values in a JSON file, {"": 1, "a": 0.7, "a b": 0.2}, instead of the verifier's verdicts."""
    max_states: Annotated[Count, arg(metavar="N")] = 200_000
    """List at most this many prefixes, and states of the sampler."""


@validated
@dataclass(frozen=True)
class DisplaySettings:
    """Output."""

    json: bool = False
    """Print one JSON record with every output instead of tables."""
    top: Annotated[Count, arg(metavar="N")] = 20
    """Show this many outputs in the table and in the figure: the most probable ones under either distribution."""
    figure: Annotated[Path | None, arg(metavar="FILE")] = None
    """Draw the tree of prefixes to this .svg or .png file: how often the sampler takes each branch, compared with how
    often it should."""

    def __post_init__(self) -> None:
        if self.figure is not None:
            if self.figure.suffix.lstrip(".") not in FORMS:
                raise InputError("figure", str(self.figure), "name a file that ends in .svg or .png")
            require_folder(self.figure)


@dataclass(frozen=True)
class DistributionSettings:
    """The distribution of `sampler`, the one that `sampling` names, on an oracle under a rule."""

    source: Source
    sampler: Any
    rule: Rule
    sampling: ExactSampling
    shown: DisplaySettings

    def __post_init__(self) -> None:
        self.rule.require_used()
        if self.rule.on_error != "raise":
            hint = "leave it out: a distribution is of what the rule answers, and has none where it raises"
            raise InputError("on_error", self.rule.on_error, hint)
        name = self.sampling.sampler
        if self.sampling.values is None:
            if self.sampler.uses != "nothing" and not self.rule.specs:
                others = " or --values FILE" if self.sampler.uses == "weights" else ""
                raise InputError(
                    "verifier", None, f"the sampler {name} needs one: give --verifier SPEC{others}"
                )
        elif self.sampler.uses != "weights":
            raise InputError(
                "values", self.sampling.values, f"the sampler {name} uses no values: leave them out"
            )
        elif self.sampling.values == "exact" and not self.rule.specs:
            raise InputError("values", "exact", "they are of a rule: give --verifier SPEC")


OPTIONS: dict[str, type] = {
    "oracle": Source,
    "rule": Rule,
    "sampler and cut": ExactSampling,
    "output": DisplaySettings,
}
"""The options of the command, by the title that they have in its help."""
