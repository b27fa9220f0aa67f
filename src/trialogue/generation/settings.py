"""What a run of `trialogue generate` is asked for: every option is a field here, and its help the field's docstring."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Interval
from tyro.conf import arg

from trialogue.errors import InputError
from trialogue.executors.settings import Execution
from trialogue.generation.inputs import Inputs
from trialogue.generation.prompts import Prompt, located
from trialogue.generation.verifier_specs import Rule
from trialogue.validation import Count, Natural, NonNegative, Share, validated

TRUNCATION = ("temperature", "top_p", "top_k", "min_p")
_LONGEST = 256
_TRIES = 10
MOST_SAMPLES = 10_000_000
"""Samples of a run, over all prompts: their records are held in memory until it ends."""
_TOO_MANY = (
    f"a run has at most {MOST_SAMPLES} samples in all, whose records are held in memory until it ends: use fewer, "
    "or several runs with different --seed"
)


@validated
@dataclass(frozen=True)
class SamplerSettings:
    """How tokens are sampled."""

    sampler: Annotated[str, arg(metavar="SAMPLER")] = "ancestral"
    """Sample with this sampler, one of those below (default: masked-decoding if a verifier has a mask, otherwise
    ancestral). `--sampler SAMPLER --help` lists its own options too."""
    temperature: Annotated[NonNegative, arg(metavar="T")] = 1.0
    """Divide the logits by this temperature; 0 is greedy."""
    top_p: Annotated[float, Interval(gt=0, le=1), arg(metavar="P")] = 1.0
    """Keep the most probable tokens up to a total probability of P."""
    top_k: Annotated[Count | None, arg(metavar="K")] = None
    """Keep the K most probable tokens (all)."""
    min_p: Annotated[Share, arg(metavar="P")] = 0.0
    """Keep the tokens that are at least P times as probable as the most probable one. Top-k, top-p and min-p come
    before the verdict of a rule, but after a mask (--method mask, --proposal mask), unless --no-mask-first."""

    @property
    def truncation(self) -> dict[str, Any]:
        """The arguments of `trialogue.samplers.truncated`."""
        return {name: getattr(self, name) for name in TRUNCATION}

    @property
    def cuts(self) -> bool:
        """Whether tokens are cut off."""
        return self.temperature == 0 or self.top_k is not None or self.top_p != 1 or self.min_p != 0

    @property
    def deterministic(self) -> str | None:
        """The name of the field that leaves a single token to sample, if one does."""
        if self.temperature == 0:
            return "temperature"
        return "top_k" if self.top_k == 1 else None

    def require_choice(self, sampler: Any) -> None:
        """Raise `InputError` if `sampler` would repeat the only token that is left forever."""
        # A sampler that uses verdicts and has no weights samples again after a rejection.
        if self.deterministic is not None and sampler.uses == "verdicts" and not sampler.weighted:
            hint = f"the sampler {self.sampler} would draw the same token again after every rejection"
            value = getattr(self, self.deterministic)
            raise InputError(self.deterministic, value, f"{hint}: leave more than one token to draw from")


@validated
@dataclass(frozen=True)
class Sampling(SamplerSettings):
    """How samples are drawn."""

    stop: Annotated[tuple[str, ...], arg(metavar="TEXT")] = ()
    r"""Complete a sample at this text; may come again; \n and \t are understood. Verifiers judge the text before it
    (functions of tokens are given the stop too)."""
    n: Annotated[Count, arg(metavar="N")] = 1
    """Draw this many samples of each prompt."""
    until: Annotated[Count | None, arg(metavar="N")] = None
    """Draw samples of each prompt until N are accepted, instead of --n. They are the first of those that --n draws, and
    all that were rejected on the way are among them."""
    max_tries: Annotated[Count | None, arg(metavar="N")] = None
    """Give a prompt up after this many samples with --until (10 for each that is to be accepted)."""
    max_new_tokens: Annotated[Count | None, arg(metavar="N")] = None
    """Stop after this many tokens (256, or what the model's context leaves)."""
    max_queries: Annotated[Count | None, arg(metavar="N")] = None
    """Give a sample up after this many calls of the model (none)."""
    max_steps: Annotated[Count | None, arg(metavar="N")] = None
    """Give a sample up after this many steps of the sampler (1000 for each of --max-new-tokens)."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """Seed the samples. A sample depends on the seed, on the id of its prompt (by default its place) and on its number
    among the samples of that prompt, not on other prompts."""
    log_probs: bool = False
    """Write the log-probability of every token into the records too: the model's own, before mask, temperature and
    cuts."""
    resample: bool = False
    """Draw the output from the weighted samples, in proportion to their weights."""

    def __post_init__(self) -> None:
        for name in ("n", "until", "max_tries"):
            if (number := getattr(self, name)) is not None and number > MOST_SAMPLES:
                raise InputError(name, number, _TOO_MANY)
        if self.until is None and self.max_tries is not None:
            raise InputError(
                "max_tries", self.max_tries, "leave it out: it bounds --until, which is not given"
            )
        if self.until is not None and self.deterministic is not None:
            hint = (
                "--until would draw the same sample again: leave more than one token to draw from, or use --n"
            )
            raise InputError(self.deterministic, getattr(self, self.deterministic), hint)
        if self.until is not None and self.n != 1:
            raise InputError("n", self.n, f"--until {self.until} is given too: leave out one of them")
        if self.max_tries is not None and self.max_tries < self.wanted:
            hint = f"use at least {self.wanted}, the number that --until wants accepted"
            raise InputError("max_tries", self.max_tries, hint)

    @property
    def longest(self) -> int:
        """The longest completion in tokens, where the model's context does not end it sooner."""
        return _LONGEST if self.max_new_tokens is None else self.max_new_tokens

    @property
    def wanted(self) -> int:
        """How many samples of each prompt are to be accepted, if all are that the user hopes for."""
        return self.n if self.until is None else self.until

    @property
    def most_tries(self) -> int:
        """How many samples of each prompt are drawn at most."""
        if self.until is None:
            return self.n
        return _TRIES * self.until if self.max_tries is None else self.max_tries


@dataclass(frozen=True)
class Destination:
    """Where the samples go."""

    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write to this file, and go on where a killed run stopped (standard output)."""
    force: bool = False
    """Replace what is in --out."""
    ordered: bool = False
    """Write records in the order of prompts and samples instead of as they finish. Records that wait for an earlier one
    lie in FILE.waiting.jsonl, so that a run that is stopped loses none of them."""
    require_accepted: bool = False
    """Exit with code 3 if fewer samples of a prompt were accepted than --n or --until ask for. Without this option the
    code is 0, and standard error says if none was accepted, and why."""
    stream: bool = False
    """Show the text while it grows."""

    def __post_init__(self) -> None:
        if self.force and self.out is None:
            raise InputError("force", True, "leave it out: without --out there is no file to begin anew")


@validated
@dataclass(frozen=True)
class MachineSettings:
    """Hardware and number formats. Only `dtype` and `weights` change which samples are drawn."""

    batch_size: Annotated[Count | None, arg(metavar="ROWS")] = None
    """Evaluate this many rows at once (as many as are useful)."""
    memory: Annotated[Count | None, arg(metavar="PREFIXES")] = None
    """Store the distributions of this many prefixes."""
    device: Annotated[str | None, arg(metavar="DEVICE")] = None
    """Compute on this device: cpu, cuda, cuda:1 or mps (the GPU, if there is one)."""
    dtype: Annotated[str, arg(metavar="TYPE")] = "float32"
    """Load weights as this type: float32, bfloat16, float16, float64 or auto."""
    weights: Annotated[str, arg(metavar="FORMAT")] = "float32"
    """Multiply weights on the processor in this format: float32, bfloat16, int8, int4, or auto, the fastest of these
    that keeps the model's distributions."""
    threads: Annotated[Count, arg(metavar="N")] = 1
    """Use this many threads of torch."""
    trust_remote_code: bool = False
    """Run Python code that comes with the model."""
    recompute: bool = False
    """Evaluate whole prefixes, for models whose cache cannot be rewound."""


@dataclass(frozen=True)
class GenerationSettings:
    """A run: samples of each of `prompts`, those of `inputs`, by `sampler`, the one that `sampling` names."""

    inputs: Inputs
    prompts: tuple[Prompt, ...]
    sampler: Any
    rule: Rule
    sampling: Sampling
    destination: Destination
    machine: MachineSettings
    execution: Execution = field(default_factory=Execution)

    def __post_init__(self) -> None:
        for prompt in self.prompts:
            self.rule_of(prompt)
        self.rule.require_used(spec for prompt in self.prompts for spec in prompt.rule)
        if self.sampling.wanted * len(self.prompts) > MOST_SAMPLES:
            name = "n" if self.sampling.until is None else "until"
            raise InputError(
                name, self.sampling.wanted, f"{_TOO_MANY}; there are {len(self.prompts)} prompts"
            )
        if self.sampler.uses != "nothing" and not self.has_rules:
            raise InputError("verifier", None, f"the sampler {self.sampling.sampler} needs one")
        if self.destination.stream and (len(self.prompts) > 1 or self.sampling.most_tries > 1):
            hint = "one sample of one prompt can be shown: leave out --n and --until, give one prompt"
            raise InputError("stream", True, hint)
        if self.destination.stream and self.execution.executor != "local":
            hint = f"leave it out: what grows on --executor {self.execution.executor} is not seen before it is whole"
            raise InputError("stream", True, hint)
        if self.sampling.resample and not self.sampler.weighted:
            hint = f"samples of the sampler {self.sampling.sampler} have no weights"
            raise InputError("resample", True, hint)
        if self.sampling.resample and self.sampling.until is not None:
            # A run that stops at an accepted sample has too many of those: the mean of its weights is biased.
            hint = "leave it out, or use --n: weights of a run that ends with an accepted sample have no mean"
            raise InputError("resample", True, hint)
        self.sampling.require_choice(self.sampler)
        if not self.sampler.keeps_prompts:
            # A record holds the prompt as it was given, and what the model wrote behind it.
            hint = "leave it out: a record cannot say what became of the prompt (trialogue.samplers.generate can)"
            raise InputError("erase_prompt", True, hint)

    @property
    def has_rules(self) -> bool:
        """Whether there is a verifier of any prompt."""
        return bool(self.rule.specs) or any(prompt.rule for prompt in self.prompts)

    def rule_of(self, prompt: Prompt) -> Rule:
        """What is accepted as a completion of `prompt`: the rule of all prompts and its own."""
        return located(prompt.where, partial(self.rule.joined, prompt))

    @property
    def own(self) -> dict[int | str, dict[str, Any]]:
        """By the id of each prompt that has a rule of its own, what in place of `identity` decides its samples."""
        ruled = [prompt for prompt in self.prompts if prompt.rule]
        return {prompt.id: self.rule_of(prompt).identity(prompt.rule) for prompt in ruled}

    def runs(self) -> list[str]:
        """Of each prompt, a short name of what decides its samples: the files of its verifiers as they are now."""
        identity, own = self.identity(), self.own
        return [digest(identity, own.get(prompt.id)) for prompt in self.prompts]

    def identity(self) -> dict[str, Any]:
        """What decides the samples of a prompt, as JSON values: two runs that agree in it continue each other."""
        name, sampling = self.sampling.sampler, asdict(self.sampling)
        # How many samples there are, and what becomes of them, changes none of them.
        del sampling["n"], sampling["until"], sampling["max_tries"], sampling["resample"]
        if not sampling["log_probs"]:
            del sampling["log_probs"]
        sampling["max_new_tokens"] = self.sampling.longest
        values = {
            "sampler": sampling.pop("sampler"),
            **{f"{name} {field}": value for field, value in asdict(self.sampler).items()},
            **self.rule.identity(),
            "stop": sampling.pop("stop"),
            "model": self.inputs.model,
            "dtype": self.machine.dtype,
            "weights": self.machine.weights,
            "chat": self.inputs.chat,
            **({} if self.inputs.system is None else {"system": self.inputs.system}),
            **sampling,
        }
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain


OPTIONS: dict[str, type] = {
    "model and prompts": Inputs,
    "rule": Rule,
    "sampling": Sampling,
    "output": Destination,
    "machine": MachineSettings,
    "workers": Execution,
}
"""The options of the command, by the title that they have in its help."""


def digest(identity: dict[str, Any], own: Mapping[str, Any] | None = None) -> str:
    """A short name of what decides the samples: `identity`, but for what a prompt has of its `own`."""
    identity = identity if own is None else {**identity, **own}
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
