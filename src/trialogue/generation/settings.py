"""Options of `trialogue generate`. Each field is an option, and its docstring is the help text."""

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
from trialogue.generation.prompts import Prompt, with_location
from trialogue.generation.verifiers.specs import ConstraintSettings
from trialogue.validation import Count, Natural, NonNegative, Share, validated

TRUNCATION = ("temperature", "top_p", "top_k", "min_p")
_LONGEST = 256
_TRIES = 10
MOST_SAMPLES = 10_000_000
"""Maximum number of samples of a run, over all prompts. Their records stay in memory until the run ends."""
_TOO_MANY = (
    f"a run can have at most {MOST_SAMPLES} samples over all prompts; generate fewer, or start several runs with "
    "different --seed"
)


@validated
@dataclass(frozen=True)
class SamplerSettings:
    """Options on the sampler and on the truncation of the next-token distribution."""

    sampler: Annotated[str, arg(metavar="SAMPLER")] = "ancestral"
    """Use this sampler (default: masked-decoding if the constraint has a grammar, otherwise ancestral). All are listed
    below. `--sampler SAMPLER --help` also lists the options of the sampler. `--sampler unmasking:NAME` samples
    from a masked model, with its own options."""
    temperature: Annotated[NonNegative, arg(metavar="T")] = 1.0
    """Divide the logits by this temperature. 0 means greedy decoding."""
    top_p: Annotated[float, Interval(gt=0, le=1), arg(metavar="P")] = 1.0
    """Keep the smallest set of most probable tokens with a total probability of at least P."""
    top_k: Annotated[Count | None, arg(metavar="K")] = None
    """Keep the K most probable tokens (default: all)."""
    min_p: Annotated[Share, arg(metavar="P")] = 0.0
    """Keep tokens with at least P times the probability of the most probable token. Samplers that mask apply the mask
    before top-k, top-p and min-p (unless --no-mask-first); samplers that reject apply it after them."""

    @property
    def truncation(self) -> dict[str, Any]:
        """Temperature, top-p, top-k and min-p as keyword arguments of `trialogue.samplers.truncated`."""
        return {name: getattr(self, name) for name in TRUNCATION}

    @property
    def cuts(self) -> bool:
        """Whether the settings give some tokens probability zero, by greedy decoding, top-k, top-p or min-p."""
        return self.temperature == 0 or self.top_k is not None or self.top_p != 1 or self.min_p != 0

    @property
    def deterministic_field(self) -> str | None:
        """Name of the option by which only one token remains at each step, for instance "temperature", or None."""
        if self.temperature == 0:
            return "temperature"
        return "top_k" if self.top_k == 1 else None

    def require_choice(self, sampler: Any) -> None:
        """Check that a sampler that retries rejected tokens or texts can sample different ones.

        Args:
            sampler: Sampler of the run.

        Raises:
            InputError: If only one token remains at each step, and `sampler` would repeat it forever or fail.
        """
        from trialogue.samplers import AdaptiveRejection  # only a command that generates needs torch

        if self.deterministic_field is None:
            return
        hint = None
        if isinstance(sampler, AdaptiveRejection):
            hint = (
                f"the sampler {self.sampler} would fail at the first rejection, because no other text remains"
            )
        elif sampler.uses == "verdicts" and not sampler.weighted:
            # A sampler that uses verdicts and has no weights samples again after a rejection.
            hint = f"the sampler {self.sampler} would repeat the same token after every rejection"
        if hint is not None:
            value = getattr(self, self.deterministic_field)
            raise InputError(self.deterministic_field, value, f"use a larger value: {hint}")


@validated
@dataclass(frozen=True)
class Sampling(SamplerSettings):
    """Options on the number, length and randomness of the samples."""

    stop: Annotated[tuple[str, ...], arg(metavar="TEXT")] = ()
    r"""End a sample at this text. Repeat the option for more stop strings; \n and \t are understood. Verifiers judge
    the text before the stop string (functions of tokens also receive the stop string)."""
    n: Annotated[Count, arg(metavar="N")] = 1
    """Draw this many samples per prompt."""
    until: Annotated[Count | None, arg(metavar="N")] = None
    """Draw samples of each prompt until N are accepted, instead of --n. Rejected samples are written too."""
    max_tries: Annotated[Count | None, arg(metavar="N")] = None
    """With --until, stop after this many samples of a prompt (default: 10 times N)."""
    max_new_tokens: Annotated[Count | None, arg(metavar="N")] = None
    """Stop after this many tokens (default: 256, or the rest of the model's context if that is less)."""
    within_limit: bool = False
    """Complete the text before --max-new-tokens, under a regular expression, a choice or a JSON schema. Near the limit,
    only tokens are allowed after which the text can still be completed."""
    max_queries: Annotated[Count | None, arg(metavar="N")] = None
    """Stop a sample after this many model calls (default: no limit). With samplers that reject, this favours short
    texts, so the accepted samples are biased."""
    max_steps: Annotated[Count | None, arg(metavar="N")] = None
    """Stop a sample after this many steps of the sampler (default: 1000 times --max-new-tokens)."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """Seed of the random numbers. A sample depends on the seed, the id of its prompt and its number among the samples
    of the prompt, but not on other prompts."""
    log_probs: bool = False
    """Write the log-probability of each token under the model, before mask, temperature and truncation."""
    confidence: bool = False
    """Write how sure the model is of each field of a JSON text, from 0 to 1. This is the probability of the value among
    the values that the grammar allows, before temperature and truncation. A field with more than 256 allowed values,
    such as a free string, is drawn again 16 times."""
    resample: bool = False
    """Correct the frequencies of weighted samples, such as those of masked-decoding. The samples of each prompt are
    replaced by as many draws from them, in proportion to their weights."""

    def __post_init__(self) -> None:
        for name in ("n", "until", "max_tries"):
            if (number := getattr(self, name)) is not None and number > MOST_SAMPLES:
                raise InputError(name, number, _TOO_MANY)
        if self.until is None and self.max_tries is not None:
            raise InputError(
                "max_tries", self.max_tries, "leave it out or add --until: it applies only to --until"
            )
        if self.until is not None and self.deterministic_field is not None:
            hint = "use a larger value, or --n instead of --until, which would repeat the same sample"
            raise InputError(self.deterministic_field, getattr(self, self.deterministic_field), hint)
        if self.until is not None and self.n != 1:
            raise InputError("n", self.n, f"leave out either --n or --until {self.until}")
        if self.max_tries is not None and self.max_tries < self.accepted_per_prompt:
            hint = f"use at least {self.accepted_per_prompt}, the value of --until"
            raise InputError("max_tries", self.max_tries, hint)

    @property
    def max_completion_tokens(self) -> int:
        """Maximum number of tokens of a completion. The model's context may end it sooner."""
        return _LONGEST if self.max_new_tokens is None else self.max_new_tokens

    @property
    def accepted_per_prompt(self) -> int:
        """Number of samples that the user requested for each prompt.

        This is the option `until`, which counts accepted samples, or otherwise the option `n`, which counts
        all samples.
        """
        return self.n if self.until is None else self.until

    @property
    def max_samples_per_prompt(self) -> int:
        """Maximum number of samples that are generated per prompt, accepted or not."""
        if self.until is None:
            return self.n
        return _TRIES * self.until if self.max_tries is None else self.max_tries


@dataclass(frozen=True)
class OutputSettings:
    """Options on the output of the samples."""

    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write JSON Lines to FILE, and resume an interrupted run (default: standard output). Tables that samples share
    (--share) are stored in the folder FILE.tables."""
    force: bool = False
    """Overwrite the file given by --out."""
    ordered: bool = False
    """Write samples in the order of the prompts instead of as they finish. Finished samples that wait for an earlier
    one are stored in FILE.waiting.jsonl, so that an interrupted run loses none."""
    require_accepted: bool = False
    """Exit with code 3 if a prompt has fewer accepted samples than --n or --until requires (default: exit with code 0
    and print a warning if no sample was accepted)."""
    stream: bool = False
    """Show the text of a single sample while it is generated."""

    def __post_init__(self) -> None:
        if self.force and self.out is None:
            raise InputError("force", True, "leave it out or add --out: there is no file to overwrite")


@validated
@dataclass(frozen=True)
class ModelSettings:
    """Options on hardware and number formats. Only --dtype and --weights affect the results."""

    batch_size: Annotated[Count | None, arg(metavar="ROWS")] = None
    """Evaluate this many sequences in one forward pass (default: chosen from the number of sequences)."""
    device: Annotated[str | None, arg(metavar="DEVICE")] = None
    """Compute on this device, such as cpu, cuda, cuda:1 or mps (default: the GPU if there is one)."""
    dtype: Annotated[str, arg(metavar="TYPE")] = "float32"
    """Load the weights in this type: float32, bfloat16, float16, float64 or auto."""
    weights: Annotated[str, arg(metavar="FORMAT")] = "float32"
    """Multiply weights on the CPU in this format: float32, bfloat16, int8, int4, or auto (the fastest format that
    preserves the model's distributions)."""
    threads: Annotated[Count, arg(metavar="N")] = 1
    """Use this many PyTorch threads."""
    trust_remote_code: bool = False
    """Execute Python code from the model's repository."""
    recompute: bool = False
    """Evaluate whole prefixes without a cache, for models whose cache cannot be rewound."""


@validated
@dataclass(frozen=True)
class MachineSettings(ModelSettings):
    """Options on hardware and number formats. Only --dtype and --weights affect the samples."""

    memory: Annotated[Count | None, arg(metavar="PREFIXES")] = None
    """Cache the next-token distributions of this many prefixes."""


@dataclass(frozen=True)
class GenerationSettings:
    """All settings of a run of `trialogue generate`.

    Args:
        inputs: Options on the model and the prompts.
        prompts: Prompts of the run.
        sampler: Instance of the sampler class that the option `sampler` in `sampling` names.
        rule: Verifiers that apply to all prompts.
        sampling: Options on number, length and randomness of the samples.
        destination: Options on the output.
        machine: Options on hardware and number formats.
        execution: Options on parallel workers.
    """

    inputs: Inputs
    prompts: tuple[Prompt, ...]
    sampler: Any
    rule: ConstraintSettings
    sampling: Sampling
    destination: OutputSettings
    machine: MachineSettings
    execution: Execution = field(default_factory=Execution)

    def __post_init__(self) -> None:
        for prompt in self.prompts:
            rule = self.verifiers_for(prompt)
            if self.sampling.confidence:
                with_location(prompt.where, rule.find_json)
        self.rule.require_used(spec for prompt in self.prompts for spec in prompt.rule)
        if self.sampling.accepted_per_prompt * len(self.prompts) > MOST_SAMPLES:
            name = "n" if self.sampling.until is None else "until"
            raise InputError(
                name, self.sampling.accepted_per_prompt, f"{_TOO_MANY}; there are {len(self.prompts)} prompts"
            )
        if self.sampler.needs_verifier and not self.has_verifiers:
            raise InputError(
                "verifier", None, f"use one: the sampler {self.sampling.sampler} needs a verifier"
            )
        if self.destination.stream and (len(self.prompts) > 1 or self.sampling.max_samples_per_prompt > 1):
            hint = "use one prompt, without --n and --until: only a single sample can be shown"
            raise InputError("stream", True, hint)
        if self.destination.stream and self.execution.executor != "local":
            hint = f"leave it out: --executor {self.execution.executor} returns only finished samples"
            raise InputError("stream", True, hint)
        if self.sampling.resample and not self.sampler.weighted:
            hint = f"leave it out: samples of the sampler {self.sampling.sampler} have no weights"
            raise InputError("resample", True, hint)
        if self.sampling.resample and self.sampling.until is not None:
            # Stopping at an accepted sample biases the mean of the weights.
            hint = "leave it out, or use --n: stopping at an accepted sample biases the weights"
            raise InputError("resample", True, hint)
        self.sampling.require_choice(self.sampler)
        if self.sampler.round_size is not None and not self.execution.is_single_process:
            hint = "leave it out, or leave out --executor and --workers: samples in several processes share nothing"
            raise InputError("share", self.sampler.round_size, hint)
        if not self.sampler.keeps_prompts:
            # A record contains the original prompt, followed by the completion.
            hint = "leave it out, or use trialogue.samplers.generate: output records contain only unchanged prompts"
            raise InputError("erase_prompt", True, hint)

    @property
    def has_verifiers(self) -> bool:
        """Whether any prompt has a verifier."""
        return bool(self.rule.specs) or any(prompt.rule for prompt in self.prompts)

    def verifiers_for(self, prompt: Prompt) -> ConstraintSettings:
        """Return the verifiers of one prompt, including those that apply to all prompts.

        Args:
            prompt: A prompt of the run.
        """
        return with_location(prompt.where, partial(self.rule.combined, prompt))

    @property
    def prompt_identities(self) -> dict[int | str, dict[str, Any]]:
        """Settings that determine the samples and differ between prompts, by prompt id.

        Each value has entries of `identity` that must be replaced for the prompt. Only prompts with
        additional verifiers are included.
        """
        ruled = [prompt for prompt in self.prompts if prompt.rule]
        return {prompt.id: self.verifiers_for(prompt).identity(prompt.rule) for prompt in ruled}

    def prompt_digests(self) -> list[str]:
        """Return a hash for each prompt that identifies the settings of its samples.

        The hash covers all settings and files of verifiers that determine the samples. It is stored in output
        records, so that a resumed run finds the samples that it can keep.

        Returns:
            12 hexadecimal digits per prompt.
        """
        identity, own = self.identity(), self.prompt_identities
        return [digest(identity, own.get(prompt.id)) for prompt in self.prompts]

    def identity(self) -> dict[str, Any]:
        """Return the settings that determine the samples, for comparison with an earlier run.

        A run can be resumed only with equal settings. The number of samples and the hardware are not included.

        Returns:
            JSON values by name of the setting.
        """
        name, sampling = self.sampling.sampler, asdict(self.sampling)
        # The number of samples and resampling do not affect the samples themselves.
        del sampling["n"], sampling["until"], sampling["max_tries"], sampling["resample"]
        for added in ("log_probs", "confidence", "within_limit"):
            if not sampling[added]:
                del sampling[added]
        sampling["max_new_tokens"] = self.sampling.max_completion_tokens
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
    "verifiers": ConstraintSettings,
    "sampling": Sampling,
    "output": OutputSettings,
    "machine": MachineSettings,
    "workers": Execution,
}
"""Option groups of the command by their title in the help."""


def digest(identity: dict[str, Any], own: Mapping[str, Any] | None = None) -> str:
    """Hash settings that determine samples.

    Args:
        identity: Result of `GenerationSettings.identity`.
        own: Entries of a single prompt, which replace entries of `identity`.

    Returns:
        The first 12 hexadecimal digits of the SHA-256 hash.
    """
    identity = identity if own is None else {**identity, **own}
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
