"""Unmasking samplers in `trialogue generate` and `trialogue distribution`, selected by `--sampler unmasking:NAME`."""

import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from trialogue.cli.parsing.fields import Group, parse
from trialogue.cli.parsing.samplers import repeat_option
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, validated

if TYPE_CHECKING:
    from torch import Tensor

    from trialogue.generation.verifiers.specs import BuiltVerifier, ConstraintSettings
    from trialogue.models.hub.pretrained_masked import PretrainedMasked
    from trialogue.samplers.unmasking import Unmasking

PREFIX = "unmasking:"


def is_unmasking(words: Sequence[str]) -> bool:
    """Return whether the words of a command line select an unmasking sampler."""
    options = zip(("", *words), words, strict=False)
    return any(
        word.startswith(f"--sampler={PREFIX}") or (before == "--sampler" and word.startswith(PREFIX))
        for before, word in options
    )


@validated
@dataclass(frozen=True)
class UnmaskingSettings:
    """Options on the sampler of a masked model."""

    sampler: Annotated[str, arg(metavar="unmasking:NAME[:JSON]")] = ""
    """Reveal masked positions with this sampler: random, left-to-right, confidence, entropy, margin, draw-then-select
    or remdm. Settings as JSON: unmasking:confidence:{"positions": 2}, {"threshold": 0.9}, {"cosine": 8} (passes),
    {"temperature": 0.5}, {"top_p": 0.9}, {"blocks": 32}; remdm:{"passes": 16, "eta": 0.02}."""

    def build(self) -> "Unmasking[Any]":
        """Return the sampler."""
        from trialogue.samplers.registered import UNMASKING

        sampler: Unmasking[Any] = UNMASKING.build(self.sampler.removeprefix(PREFIX))
        return sampler


@validated
@dataclass(frozen=True)
class MaskedInputs:
    """Options on the masked model, the prompts and the samples."""

    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """Load this masked language model or masked diffusion model: a Hugging Face id, a folder, or a name from
    `trialogue models list`."""
    prompt: Annotated[tuple[str, ...], arg(metavar="TEXT")] = ()
    """Fill the mask tokens of this text, or continue it. Repeat the option for more prompts."""
    max_new_tokens: Annotated[Natural, arg(metavar="N")] = 0
    """Append N mask tokens to each prompt."""
    n: Annotated[Count, arg(metavar="N")] = 1
    """Draw this many samples per prompt."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """Seed of the random numbers."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write JSON Lines to FILE (default: standard output)."""
    batch_size: Annotated[Count, arg(metavar="ROWS")] = 64
    """Evaluate at most this many sequences in one forward pass."""
    device: Annotated[str | None, arg(metavar="DEVICE")] = None
    """Compute on this device, such as cpu or cuda (default: the GPU if there is one)."""
    dtype: Annotated[str, arg(metavar="TYPE")] = "float32"
    """Load the weights in this type: float32, bfloat16, float16, float64 or auto."""
    threads: Annotated[Count, arg(metavar="N")] = 1
    """Use this many PyTorch threads."""
    trust_remote_code: bool = False
    """Execute Python code from the model's repository, which masked diffusion models need."""

    def __post_init__(self) -> None:
        if self.model is None:
            raise InputError("model", None, "use a masked model: a Hugging Face id or a folder")
        if not self.prompt:
            raise InputError("prompt", None, "use --prompt TEXT")


@validated
@dataclass(frozen=True)
class CheckedSettings:
    """Options on rejected texts. Verifiers judge the text that fills the masks, which must follow each other.

    Without these options, --regex and --choice exclude tokens instead, so that no text is rejected.
    """

    quota: Annotated[Natural | None, arg(metavar="N")] = None
    """Reject texts, and mask positions of a rejected text again at most N times. The next rejection is final (default:
    10 for functions)."""
    remask: Annotated[Count | None, arg(metavar="N")] = None
    """Mask N random positions of a rejected text again, which is faster but biases the distribution (default: all)."""


@validated
@dataclass(frozen=True)
class MaskedSource:
    """The masked distribution."""

    distribution: Annotated[str | None, arg(metavar="NAME[:JSON]")] = None
    """Use this distribution with its arguments as JSON, such as ising:{"sites": 6} or ising-clique:{"n": 6, "clique":
    3, "coupling": 0.4, "field": 0}."""
    max_states: Annotated[Count, arg(metavar="N")] = 200_000
    """Stop with an error if the sampler has more states than this."""
    top: Annotated[Count, arg(metavar="N")] = 20
    """Show this many of the most probable outputs."""
    json: bool = False
    """Print one JSON record with all outputs instead of tables."""

    def __post_init__(self) -> None:
        if self.distribution is None:
            hint = 'use a masked distribution, for example ising:{"sites": 6}'
            raise InputError("distribution", None, hint)


def _parse(command: str, about: str, groups: Mapping[str, type], words: Sequence[str]) -> list[Any]:
    """Return the instance of each group of options, whose titles are the keys of `groups`."""
    parsed = parse(
        {title: Group(one, inspect.getdoc(one) or "") for title, one in groups.items()},
        words,
        prog=f"trialogue {command} --sampler {PREFIX}NAME",
        description=about,
        unknown="no such option with an unmasking sampler",
    )
    return list(parsed.values())


def generate_by_unmasking(words: Sequence[str]) -> None:
    """Fill the masked positions of texts with a masked model.

    Writes one JSON record per sample, with the text, the token ids and the number of passes of the model.
    """
    from trialogue.generation.verifiers.specs import ConstraintSettings

    groups = {
        "model and samples": MaskedInputs,
        "unmasking": UnmaskingSettings,
        "verifiers": ConstraintSettings,
        "rejected texts": CheckedSettings,
    }
    about = inspect.getdoc(generate_by_unmasking) or ""
    inputs, chosen, rule, repair = _parse("generate", about, groups, repeat_option("--choice", words))
    sampler = chosen.build()
    rule.require_used()
    if not rule.specs and repair != CheckedSettings():
        name = "quota" if repair.remask is None else "remask"
        raise InputError(
            name, getattr(repair, name), "leave it out, or add a verifier such as --regex PATTERN"
        )

    import torch

    from trialogue.models.hub.pretrained_masked import load_pretrained_masked
    from trialogue.randomness import derive_seed
    from trialogue.samplers.unmasking import unmask
    from trialogue.storage import atomic_write, require_folder

    if inputs.out is not None:
        require_folder(inputs.out)
    torch.set_num_threads(inputs.threads)
    model = load_pretrained_masked(
        inputs.model,
        device=inputs.device,
        dtype=inputs.dtype,
        batch_size=inputs.batch_size,
        remote_code=inputs.trust_remote_code,
    )
    built = rule.build(model.tokenization, verdicts=True) if rule.specs else []
    lines, accepted = [], 0
    for number, prompt in enumerate(inputs.prompt):
        tokens = model.masked_prompt(prompt, inputs.max_new_tokens)
        if not bool((tokens == model.mask).any()):
            hint = "use --max-new-tokens N, or write the mask token of the tokenizer into the prompt"
            raise InputError("prompt", prompt, hint)
        samples = unmask(
            model,
            _constrain(sampler, built, rule, repair, model, prompt, tokens) if built else sampler,
            tokens[None],
            num_samples=inputs.n,
            seed=derive_seed(inputs.seed, "prompt", number),
            eos=model.eos,
            batch_size=inputs.batch_size,
        )
        rows = [row[:length] for row, length in zip(samples.tokens, samples.lengths.tolist(), strict=True)]
        for sample, row in enumerate(rows):
            record = {
                "id": number + 1,
                "sample": sample,
                "prompt": prompt,
                "text": model.decode(row[None])[0],
                "tokens": row.tolist(),
                "passes": int(samples.passes[sample]),
                "positions": int(samples.positions[sample]),
            }
            if built:
                record["accepted"] = bool(samples.accepted[sample])
                accepted += record["accepted"]
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    if inputs.out is None:
        sys.stdout.write("".join(lines))
    else:
        atomic_write(inputs.out, "".join(lines))
    if built:
        print(f"{accepted} of {len(lines)} samples accepted", file=sys.stderr)


def _constrain(
    sampler: "Unmasking[Any]",
    built: "list[BuiltVerifier]",
    rule: "ConstraintSettings",
    repair: CheckedSettings,
    model: "PretrainedMasked",
    prompt: str,
    tokens: "Tensor",
) -> "Unmasking[Any]":
    """Wrap a sampler so that texts satisfy verifiers, after a check that the masks of the prompt follow each other."""
    from trialogue.generation.verifiers.kinds import KINDS
    from trialogue.generation.verifiers.specs import combine_verifiers
    from trialogue.samplers.unmasking import Checked, Constrained
    from trialogue.verifiers.functions.tolerant import ErrorLog, reject_on_error
    from trialogue.verifiers.languages.language_verifier import LanguageVerifier

    masks = (tokens == model.mask).nonzero()[:, 0]
    start, stop = int(masks[0]), int(masks[-1]) + 1
    functions = all(KINDS[spec.partition(":")[0]].is_function for spec in rule.specs)
    if functions and rule.verifier_scope == "sequence":
        stop = len(tokens)
    elif len(masks) < stop - start:
        hint = (
            "a verifier judges one text, but there are tokens between the masks. Use masks that follow each other, or"
            " a function with --verifier-scope sequence"
        )
        raise InputError("prompt", prompt, hint)
    languages = [one for one in built if isinstance(one.verifier, LanguageVerifier)]
    if languages and repair == CheckedSettings():
        # Only one language can exclude tokens. The other verifiers reject texts.
        first = next((one for one in languages if getattr(one.verifier, "is_regular", False)), languages[0])
        sampler = Constrained(first.verifier, sampler, eos=model.eos, judged_length=stop)
        built = [one for one in built if one is not first]
    verifier = combine_verifiers(built)
    if verifier is None:
        return sampler
    if rule.on_error == "reject":
        verifier = reject_on_error(verifier, ErrorLog())
    quota = Checked.quota if repair.quota is None else repair.quota
    return Checked(verifier, sampler, remask=repair.remask, quota=quota, eos=model.eos, judged_length=stop)


def distribution_of_unmasking(words: Sequence[str]) -> None:
    """Compute the exact output distribution of an unmasking sampler on a small masked distribution.

    Prints the expected number of passes, and the distances from the distribution itself. The command accepts
    distributions of `trialogue.data`. For your own network, call `trialogue.exact_distribution` in Python.
    """
    for option in ("--model", "--table"):
        if any(word.partition("=")[0] == option for word in words):
            hint = (
                "with an unmasking sampler, this command accepts --distribution only. For your own network, call"
                " trialogue.exact_distribution in Python"
            )
            raise InputError("option", option, hint)
    about = inspect.getdoc(distribution_of_unmasking) or ""
    groups = {"model and samples": MaskedSource, "unmasking": UnmaskingSettings}
    source, chosen = _parse("distribution", about, groups, words)
    sampler = chosen.build()

    from trialogue.data.enumerable import Enumerable
    from trialogue.data.registered import DISTRIBUTIONS
    from trialogue.oracles import Masked
    from trialogue.samplers.exact import exact_distribution, kullback_leibler, total_variation

    model = DISTRIBUTIONS.build(str(source.distribution))
    if not (isinstance(model, Enumerable) and isinstance(model, Masked)):
        hint = "use a distribution of whole sequences, such as ising, ising-clique, potts or many-body"
        raise InputError("distribution", source.distribution, hint)
    found = exact_distribution(sampler, model, max_states=source.max_states)
    target = dict(zip(map(tuple, model.states().tolist()), model.probabilities().tolist(), strict=True))
    numbers = {
        "total_variation": total_variation(found.probabilities, target),
        "kl_sampler_target": kullback_leibler(found.probabilities, target),
        "expected_passes": found.expected_passes,
        "expected_positions": found.expected_positions,
        "states": found.states,
    }
    outputs = sorted(target, key=lambda x: -max(target[x], found.probabilities.get(x, 0.0)))
    if source.json:
        listed = [
            {"tokens": list(x), "distribution": found.probabilities.get(x, 0.0), "target": target[x]}
            for x in outputs
        ]
        print(json.dumps({"sampler": str(sampler), **numbers, "outputs": listed}, allow_nan=False))
        return
    from rich.table import Table

    from trialogue.display.numbers import format_number
    from trialogue.display.terminal import console

    table = Table()
    for head in ("tokens", "target", "sampler"):
        table.add_column(head, justify="left" if head == "tokens" else "right")
    for x in outputs[: source.top]:
        table.add_row(" ".join(map(str, x)), f"{target[x]:.4g}", f"{found.probabilities.get(x, 0.0):.4g}")
    summary = Table(show_header=False, box=None)
    for name, number in numbers.items():
        summary.add_row(name.replace("_", " "), format_number(number, 4) if number > 1e-12 else "0")
    out = console()
    out.print(str(sampler), markup=False, highlight=False)
    out.print(table)
    out.print(summary)
