"""What a run of `trialogue generate` is asked for: every option is a field here, and its help the field's docstring."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from trialogue.errors import InputError, non_negative_number, probability, whole_number
from trialogue.executors.settings import Execution
from trialogue.generation.inputs import Inputs
from trialogue.generation.prompts import Prompt, located
from trialogue.generation.verifier_specs import Rule

_LONGEST = 256
_TRIES = 10
MOST_SAMPLES = 10_000_000
"""Samples of a run, over all prompts: their records are held in memory until it ends."""
_TOO_MANY = (
    f"a run has at most {MOST_SAMPLES} samples in all, whose records are held in memory until it ends: use fewer, "
    "or several runs with different --seed"
)


@dataclass(frozen=True)
class Drawing:
    """How tokens are drawn."""

    sampler: Annotated[str, arg(metavar="WALK")] = "ancestral"
    """How to draw, one of those below; masked-decoding if none is given and a verifier has a mask. `--sampler WALK
    --help` lists its own options too."""
    temperature: Annotated[float, arg(metavar="T")] = 1.0
    """0 is greedy."""
    top_p: Annotated[float, arg(metavar="P")] = 1.0
    """Keep the most probable tokens up to P."""
    top_k: Annotated[int | None, arg(metavar="K")] = None
    """Keep the K most probable tokens (all)."""
    min_p: Annotated[float, arg(metavar="P")] = 0.0
    """Keep the tokens that are at least P times as probable as the most probable one. What these three keep is cut off
    before a rule is asked, but after a mask (--method mask, --proposal mask), unless --no-mask-first."""

    def __post_init__(self) -> None:
        non_negative_number("temperature", self.temperature)
        probability("top_p", self.top_p, zero=False)
        probability("min_p", self.min_p)
        if self.top_k is not None:
            whole_number("top_k", self.top_k, 1, hint="keep at least 1 token, or leave it out for all")

    @property
    def truncation(self) -> dict[str, Any]:
        """What `trialogue.samplers.truncated` is told."""
        return {name: getattr(self, name) for name in ("temperature", "top_p", "top_k", "min_p")}

    @property
    def cuts(self) -> bool:
        """Whether tokens are cut off."""
        return self.temperature == 0 or self.top_k is not None or self.top_p != 1 or self.min_p != 0


@dataclass(frozen=True)
class Sampling(Drawing):
    """How samples are drawn."""

    stop: Annotated[tuple[str, ...], arg(metavar="TEXT")] = ()
    r"""A text that completes a sample, and may come again; \n and \t are understood. Rules judge the text before it
    (functions of tokens are given the stop too)."""
    n: Annotated[int, arg(metavar="N")] = 1
    """Samples of each prompt."""
    until: Annotated[int | None, arg(metavar="N")] = None
    """In place of --n: samples of each prompt until N are accepted. They are the first of those that --n draws, and all
    that were rejected on the way are among them."""
    max_tries: Annotated[int | None, arg(metavar="N")] = None
    """Samples of a prompt after which --until gives up (10 for each that is to be accepted)."""
    max_new_tokens: Annotated[int | None, arg(metavar="N")] = None
    """Longest completion (256, or what the model's context leaves)."""
    max_queries: Annotated[int | None, arg(metavar="N")] = None
    """Queries after which a sample is given up (none)."""
    max_steps: Annotated[int | None, arg(metavar="N")] = None
    """Moves after which a sample is given up (1000 for each of --max-new-tokens)."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """A sample depends on it, on the id of its prompt (its place, where it has none) and on its number among the
    samples of that, not on the other prompts."""
    log_probs: bool = False
    """Write the log-probability of every token into the records too: the model's own, before mask, temperature and
    cuts."""
    resample: bool = False
    """Draw the output from the weighted samples, in proportion to weight."""

    def __post_init__(self) -> None:
        whole_number("n", self.n, 1)
        for name in ("n", "until", "max_tries"):
            if (number := getattr(self, name)) is not None and number > MOST_SAMPLES:
                raise InputError(name, number, _TOO_MANY)
        whole_number("seed", self.seed, 0)
        super().__post_init__()
        _require_positive(self, "until", "max_tries", "max_new_tokens", "max_queries", "max_steps")
        if self.until is None and self.max_tries is not None:
            raise InputError(
                "max_tries", self.max_tries, "leave it out: it bounds --until, which is not given"
            )
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
    """Write here, and go on where a killed run stopped (standard output)."""
    force: bool = False
    """Begin --out anew."""
    ordered: bool = False
    """Write records in the order of prompts and samples, in place of as they finish. Those that wait for an earlier one
    lie in FILE.waiting.jsonl, so that a run that is stopped has lost none of them."""
    require_accepted: bool = False
    """Exit with code 3 where fewer samples of a prompt were accepted than --n or --until ask for. Without it the code
    is 0, and standard error says where none was accepted, and why."""
    stream: bool = False
    """Show the text while it grows."""

    def __post_init__(self) -> None:
        if self.force and self.out is None:
            raise InputError("force", True, "leave it out: without --out there is no file to begin anew")


@dataclass(frozen=True)
class Machine:
    """What computes, which changes how fast samples come and, but for `dtype` and `weights`, not which."""

    batch_size: Annotated[int | None, arg(metavar="ROWS")] = None
    """Rows that move at once (as many as are useful)."""
    memory: Annotated[int | None, arg(metavar="PREFIXES")] = None
    """Prefixes whose evaluation is remembered."""
    device: Annotated[str | None, arg(metavar="DEVICE")] = None
    """cpu, cuda, cuda:1, mps (the GPU, where there is one)."""
    dtype: Annotated[str, arg(metavar="TYPE")] = "float32"
    """float32, bfloat16, float16, float64 or auto."""
    weights: Annotated[str, arg(metavar="FORMAT")] = "float32"
    """What the processor multiplies weights in: float32, bfloat16, int8, int4, or auto: what is fastest of these and
    keeps the model's distributions."""
    threads: Annotated[int, arg(metavar="N")] = 1
    """Threads of torch."""
    trust_remote_code: bool = False
    """Run code that comes with the model."""
    recompute: bool = False
    """Evaluate whole prefixes, for models that cannot be rewound."""

    def __post_init__(self) -> None:
        whole_number("threads", self.threads, 1)
        _require_positive(self, "batch_size", "memory")


@dataclass(frozen=True)
class Settings:
    """A run: samples of each of `prompts`, those of `inputs`, by `sampler`, the one that `sampling` names."""

    inputs: Inputs
    prompts: tuple[Prompt, ...]
    sampler: Any
    rule: Rule
    sampling: Sampling
    destination: Destination
    machine: Machine
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
        self._require_choice()
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

    def _require_choice(self) -> None:
        """Raise `InputError` where a sampler would draw the one token that is left for ever."""
        # That it draws again after a rejection is what a sampler says that uses verdicts and has no weights.
        again = self.sampler.uses == "verdicts" and not self.sampler.weighted
        for name, alone in (("temperature", 0), ("top_k", 1)):
            value = getattr(self.sampling, name)
            if value == alone and self.sampling.until is not None:
                hint = "--until would draw the same sample again: leave more than one token to draw from, or use --n"
                raise InputError(name, value, hint)
            if again and value == alone:
                hint = "would draw the same token again after every rejection: leave more than one token to draw from"
                raise InputError(name, value, f"the sampler {self.sampling.sampler} {hint}")

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
    "machine": Machine,
    "workers": Execution,
}
"""The options of the command, by the title that they have in its help."""


def digest(identity: dict[str, Any], own: Mapping[str, Any] | None = None) -> str:
    """A short name of what decides the samples: `identity`, but for what a prompt has of its `own`."""
    identity = identity if own is None else {**identity, **own}
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def _require_positive(options: Any, *names: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            whole_number(name, getattr(options, name), 1)
