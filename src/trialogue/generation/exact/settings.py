"""Options of `trialogue distribution`. Each field is an option, and its docstring is the help text."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from trialogue.errors import InputError, require_text
from trialogue.generation.settings import SamplerSettings
from trialogue.generation.verifiers.specs import ConstraintSettings
from trialogue.storage import require_folder
from trialogue.validation import Count, validated

FORMS = ("svg", "png")


@dataclass(frozen=True)
class Source:
    """The next-token distribution, given in one of three ways, and the prompt."""

    table: Annotated[str | None, arg(metavar="FILE")] = None
    """Read next-token probabilities by prefix from this JSON file: {"tokens": ["a", "b", "."], "eos": ".",
    "distribution": {"": [0.5, 0.5, 0], "a b": {"b": 0.9, ".": 0.1}}, "otherwise": [...]}. Tokens of a prefix are
    separated by spaces. "eos" and "otherwise" (for all other prefixes) are optional."""
    distribution: Annotated[str | None, arg(metavar="NAME[:JSON]")] = None
    """Use this distribution with its arguments as JSON, such as dyck:{"length": 6} or
    uniform:{"tokens": ["0", "1"]}."""
    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """Load this language model: a Hugging Face id, a folder, a GGUF file, or a name from `trialogue models list`. All
    tokens that the verifier allows are enumerated, so only small trees are feasible."""
    prompt: Annotated[str, arg(metavar="TEXT")] = ""
    """Continue this text."""
    chat: bool = False
    """Apply the chat template of the language model to the prompt."""
    system: Annotated[str | None, arg(metavar="TEXT")] = None
    """With --chat, put this system message before the prompt."""

    def __post_init__(self) -> None:
        given = [name for name in ("table", "distribution", "model") if getattr(self, name) is not None]
        if len(given) != 1:
            value = None if not given else getattr(self, given[1])
            hint = "use exactly one of --table FILE, --distribution NAME and --model MODEL"
            raise InputError(given[1] if given else "table", value, hint)
        if self.chat and self.model is None:
            raise InputError(
                "chat", True, "leave it out: only a language model (--model) has a chat template"
            )
        if self.system is not None:
            if not self.chat:
                raise InputError("system", self.system, "add --chat: it applies only to the chat template")
            require_text("system", self.system)


@validated
@dataclass(frozen=True)
class ExactSampling(SamplerSettings):
    """The sampler, and the truncation of its next-token distribution. The target is not truncated."""

    max_new_tokens: Annotated[Count | None, arg(metavar="N")] = None
    """Stop after this many tokens (default: the maximum length of the distribution, if it has one)."""
    values: Annotated[str | None, arg(metavar="exact|FILE")] = None
    """Guide a sampler that uses values by the exact probability that a prefix leads to an accepted text, or by the
    values in a JSON file such as {"": 1, "a": 0.7, "a b": 0.2} (default: the values of the verifier)."""
    max_states: Annotated[Count, arg(metavar="N")] = 200_000
    """Stop with an error if there are more prefixes or sampler states than this."""


@validated
@dataclass(frozen=True)
class DisplaySettings:
    """Output of the results."""

    json: bool = False
    """Print one JSON record with all outputs instead of tables."""
    top: Annotated[Count, arg(metavar="N")] = 20
    """Show this many of the most probable outputs in the table and in the figure."""
    figure: Annotated[Path | None, arg(metavar="FILE")] = None
    """Draw the tree of prefixes to this .svg or .png file, with the probability of each branch under the sampler and
    under the target."""

    def __post_init__(self) -> None:
        if self.figure is not None:
            if self.figure.suffix.lstrip(".") not in FORMS:
                raise InputError("figure", str(self.figure), "use a file name that ends in .svg or .png")
            require_folder(self.figure)


@dataclass(frozen=True)
class DistributionSettings:
    """All settings of `trialogue distribution`.

    Args:
        source: Options on the model and the prompt.
        sampler: Instance of the sampler class that is named in `sampling`.
        rule: Verifiers of the output.
        sampling: Options on the sampler.
        shown: Options on the output of the command.
    """

    source: Source
    sampler: Any
    rule: ConstraintSettings
    sampling: ExactSampling
    shown: DisplaySettings

    def __post_init__(self) -> None:
        self.rule.require_used()
        if self.rule.on_error != "raise":
            hint = "leave it out: the exact distribution requires a verifier that does not raise"
            raise InputError("on_error", self.rule.on_error, hint)
        name = self.sampling.sampler
        if self.sampling.values is None:
            if self.sampler.needs_verifier and not self.rule.specs:
                others = " or --values FILE" if self.sampler.uses == "weights" else ""
                raise InputError(
                    "verifier", None, f"add --verifier SPEC{others}: the sampler {name} needs it"
                )
        elif self.sampler.uses != "weights":
            raise InputError(
                "values", self.sampling.values, f"leave it out: the sampler {name} uses no values"
            )
        elif self.sampling.values == "exact" and not self.rule.specs:
            raise InputError("values", "exact", "add --verifier SPEC: exact values require a verifier")


OPTIONS: dict[str, type] = {
    "oracle": Source,
    "verifiers": ConstraintSettings,
    "sampler and cut": ExactSampling,
    "output": DisplaySettings,
}
"""Option groups of the command by their title in the help."""
