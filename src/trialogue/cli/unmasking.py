"""Unmasking samplers in `trialogue generate` and `trialogue distribution`, selected by `--sampler unmasking:NAME`."""

import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from trialogue.cli.parsing.fields import Group, parse
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, validated

if TYPE_CHECKING:
    from trialogue.samplers.unmasking import Unmasking

PREFIX = "unmasking:"
_CONSTRAINTS = ("--regex", "--json-schema", "--choice", "--grammar", "--verifier")
"""Options of `trialogue generate` that need a model which predicts the next token."""


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


def _parse(command: str, about: str, kind: type, words: Sequence[str]) -> tuple[Any, "Unmasking[Any]"]:
    for word in words:
        if word.split("=", maxsplit=1)[0] in _CONSTRAINTS:
            hint = (
                "constraints mask the next token after a prefix, but an unmasking sampler reveals positions in any"
                " order. Judge complete texts in Python, with trialogue.samplers.unmasking.Checked"
            )
            raise InputError("option", word.split("=", maxsplit=1)[0], hint)
    groups = {"model and samples": kind, "unmasking": UnmaskingSettings}
    parsed = parse(
        {title: Group(one, inspect.getdoc(one) or "") for title, one in groups.items()},
        words,
        prog=f"trialogue {command} --sampler {PREFIX}NAME",
        description=about,
        unknown="no such option with an unmasking sampler",
    )
    return parsed["model and samples"], parsed["unmasking"].build()


def generate_by_unmasking(words: Sequence[str]) -> None:
    """Fill the masked positions of texts with a masked model.

    Writes one JSON record per sample, with the text, the token ids and the number of passes of the model.
    """
    inputs, sampler = _parse("generate", inspect.getdoc(generate_by_unmasking) or "", MaskedInputs, words)

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
    lines = []
    for number, prompt in enumerate(inputs.prompt):
        tokens = model.masked_prompt(prompt, inputs.max_new_tokens)
        if not bool((tokens == model.mask).any()):
            hint = "use --max-new-tokens N, or write the mask token of the tokenizer into the prompt"
            raise InputError("prompt", prompt, hint)
        samples = unmask(
            model,
            sampler,
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
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    if inputs.out is None:
        sys.stdout.write("".join(lines))
    else:
        atomic_write(inputs.out, "".join(lines))


def distribution_of_unmasking(words: Sequence[str]) -> None:
    """Compute the exact output distribution of an unmasking sampler on a small masked distribution.

    Prints the expected number of passes, and the distances from the distribution itself.
    """
    source, sampler = _parse(
        "distribution", inspect.getdoc(distribution_of_unmasking) or "", MaskedSource, words
    )

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
