"""The command `trialogue generate`: samples of a pretrained model under a verifier, as JSON lines."""

import argparse
import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialogue.cli.commands import Commands
from trialogue.cli.fields import override
from trialogue.errors import InputError, whole_number

if TYPE_CHECKING:
    from trialogue.generation.settings import Settings

_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r", r"\\": "\\"}


def generate(arguments: argparse.Namespace) -> None:
    """Draw samples of a language model, such that a verifier accepts them, and write them as JSON lines."""
    if arguments.help:
        arguments.parser.print_help()
        print(_registered(), end="")
        if arguments.walk != "ancestral":
            _walk(arguments.walk, ["--help"], arguments.parser)
        return
    if arguments.model is None:
        raise InputError("model", None, "name one: a hub id, a folder, or one of `trialogue models list`")
    whole_number("threads", arguments.threads, 1)
    if arguments.force and arguments.out is None:
        raise InputError("force", True, "leave it out: without --out there is no file to begin anew")
    settings = _settings(arguments)
    live = _live(arguments, settings)

    import torch

    from trialogue.generation.outputs import generate_to

    torch.set_num_threads(arguments.threads)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    summary = generate_to(
        settings,
        arguments.out,
        force=arguments.force,
        resample=arguments.resample,
        # On a terminal the text itself is what standard output shows.
        lines=live is None or not sys.stdout.isatty(),
        live=live,
        progress=live is None and sys.stderr.isatty(),
        report=say if sys.stderr.isatty() else None,
        warn=lambda line: say(f"trialogue: {line}"),
    )
    say(summary)


def _registered() -> str:
    """Help on every walk and every kind of verifier that there is."""
    from trialogue.generation.verifier_specs import KINDS
    from trialogue.inference import WALKS

    listed = argparse.ArgumentParser(add_help=False, usage=argparse.SUPPRESS)
    walks, verifiers = listed.add_argument_group("walks"), listed.add_argument_group("verifiers")
    for name, walk in WALKS.items():
        walks.add_argument(name, help=(walk.__doc__ or "").partition("\n")[0].replace("%", "%%"))
    for name, kind in KINDS.items():
        verifiers.add_argument(f"{name}:{kind.form}", help=kind.said.replace("%", "%%"))
    return "\n" + listed.format_help().lstrip("\n")


def _settings(arguments: argparse.Namespace) -> "Settings":
    from trialogue.generation.prompts import numbered, read_prompts
    from trialogue.generation.settings import Settings
    from trialogue.generation.verifier_specs import VerifierSpec

    if (arguments.prompt is None) == (arguments.prompts is None):
        raise InputError("prompt", arguments.prompt, "give either --prompt TEXT or --prompts FILE.jsonl")
    prompts = numbered(arguments.prompt) if arguments.prompts is None else read_prompts(arguments.prompts)
    walk = _walk(arguments.walk, arguments.overrides, arguments.parser)
    if walk.uses != "nothing" and not arguments.verifier:
        raise InputError("verifier", None, f"the walk {arguments.walk} needs one")
    return Settings(
        model=arguments.model,
        prompts=tuple(prompts),
        walk_name=arguments.walk,
        walk=walk,
        verifier=VerifierSpec(
            tuple(arguments.verifier or ()),
            arguments.verifier_scope,
            arguments.verifier_reads,
            arguments.verifier_whole,
            arguments.verifier_timeout or None,
        ),
        stop=tuple(map(_unescaped, arguments.stop or ())),
        **{name: getattr(arguments, name) for name in _PLAIN},
    )


_PLAIN = (
    *("chat", "temperature", "top_p", "top_k", "n", "max_new_tokens", "max_queries", "max_steps", "seed"),
    *("batch_size", "memory", "device", "dtype", "remote_code", "recompute"),
)


def _walk(name: str, tokens: Sequence[str], parser: argparse.ArgumentParser) -> Any:
    """The walk `name` with the fields that the command line sets behind the options of `parser`."""
    from trialogue.inference import WALKS

    if name not in WALKS:
        raise InputError("walk", name, f"the walks are {', '.join(WALKS)}")
    made: Any = WALKS[name]
    if not tokens:
        return made()
    walk = override(
        made(),
        tokens,
        name=f"the walk {name}",
        prog=f"trialogue generate --walk {name}",
        description=_said(made),
        options=[option for action in parser._actions for option in action.option_strings],
    )
    texts = {own.name: getattr(walk, own.name) for own in dataclasses.fields(walk)}
    return dataclasses.replace(
        walk, **{own: _unescaped(text) for own, text in texts.items() if isinstance(text, str)}
    )


def _said(walk: Any) -> str:
    """What the docstring of a walk says to one who types: its walks by their names, and nothing of other objects."""
    from trialogue.inference import WALKS

    said = inspect.getdoc(walk) or ""
    for name, made in WALKS.items():
        said = said.replace(f"`{made.__name__}`", name)
    # Sentences on other objects of Python, and on fields that are refused here.
    others = re.compile(r"`([A-Z]\w*|erase_prompt)`")
    paragraphs = [re.split(r"(?<=[.:])\s+(?=[A-Z`])", paragraph) for paragraph in said.split("\n\n")]
    return "\n\n".join(
        textwrap.fill(" ".join(part for part in parts if not others.search(part)), 100)
        for parts in paragraphs
    )


def _unescaped(text: str) -> str:
    return re.sub(r"\\[ntr\\]", lambda match: _ESCAPES[match[0]], text)


def _live(arguments: argparse.Namespace, settings: "Settings") -> Any:
    """Where the text is shown while it grows, if it is."""
    if not arguments.stream:
        return None
    if len(settings.prompts) * settings.n > 1:
        raise InputError(
            "stream", True, "one sample of one prompt can be shown: leave out --n, give one prompt"
        )
    from trialogue.generation.streaming import LiveText

    return LiveText(sys.stdout if sys.stdout.isatty() else sys.stderr)


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "generate",
        generate,
        fields=True,
        add_help=False,
        usage="trialogue generate --model MODEL (--prompt TEXT ... | --prompts FILE) [--verifier SPEC ...] "
        "[--walk WALK [--FIELD VALUE ...]] [OPTION ...]",
        epilog="`trialogue generate --walk WALK --help` lists the fields of a walk.",
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this help, and the fields of --walk")
    _add_inputs(parser.add_argument_group("model and prompts"))
    _add_rule(parser.add_argument_group("rule"))
    _add_sampling(parser.add_argument_group("sampling"))
    _add_output(parser.add_argument_group("output and machine"))


def _add_inputs(group: Any) -> None:
    group.add_argument("--model", help="hub id, folder, GGUF file, or a name of `trialogue models list`")
    group.add_argument("--prompt", metavar="TEXT", nargs="+", action="extend", help="texts to continue")
    group.add_argument(
        "--prompts",
        metavar="FILE",
        help='JSON lines: {"prompt": TEXT, "id": ID} or TEXT; - is standard input. An id keeps the samples of a prompt '
        "the same whatever comes before it",
    )
    group.add_argument("--chat", action="store_true", help="put each prompt into the model's chat template")


def _add_rule(group: Any) -> None:
    group.add_argument(
        "--verifier",
        metavar="SPEC",
        nargs="+",
        action="extend",
        help="what accepts a text, a KIND:CONTENT of those below; several must all accept",
    )
    group.add_argument(
        "--verifier-scope",
        choices=("completion", "sequence"),
        default="completion",
        help="what a function is given: the completion (the default), or prompt and completion",
    )
    group.add_argument(
        "--verifier-reads",
        choices=("text", "tokens"),
        default="text",
        help="as text (the default) or as token ids",
    )
    group.add_argument(
        "--verifier-whole",
        action="store_true",
        help="a function judges complete texts only, prefixes are accepted",
    )
    group.add_argument(
        "--verifier-timeout",
        metavar="SECONDS",
        type=float,
        default=10.0,
        help="the longest that one answer of a function may take (10; 0: as long as it likes)",
    )


def _add_sampling(group: Any) -> None:
    group.add_argument("--walk", default="ancestral", help="how to draw, one of those below (ancestral)")
    group.add_argument("--temperature", type=float, default=1.0, help="1; 0 is greedy")
    group.add_argument(
        "--top-p", metavar="P", type=float, default=1.0, help="keep the most probable tokens up to P (1)"
    )
    group.add_argument("--top-k", metavar="K", type=int, help="keep the K most probable tokens (all)")
    group.add_argument(
        "--stop",
        metavar="TEXT",
        nargs="+",
        action="extend",
        help=r"texts each of which completes a sample; \n and \t are understood. Rules judge the text before it "
        "(functions of tokens are given the stop too)",
    )
    group.add_argument("--n", metavar="N", type=int, default=1, help="samples of each prompt (1)")
    group.add_argument(
        "--max-new-tokens", metavar="N", type=int, default=256, help="longest completion (256)"
    )
    group.add_argument(
        "--max-queries", metavar="N", type=int, help="queries after which a sample is given up"
    )
    group.add_argument(
        "--max-steps",
        metavar="N",
        type=int,
        help="moves after which a sample is given up (1000 for each of --max-new-tokens)",
    )
    group.add_argument(
        "--seed",
        type=int,
        default=0,
        help="(0); a sample depends on it, on the id of its prompt (its place, where it has none) and on its number "
        "among the samples of that, not on the other prompts",
    )
    group.add_argument(
        "--resample",
        action="store_true",
        help="draw the output from the weighted samples, in proportion to weight",
    )


def _add_output(group: Any) -> None:
    group.add_argument(
        "--out", metavar="FILE", type=Path, help="write here, and go on where a killed run stopped"
    )
    group.add_argument("--force", action="store_true", help="begin --out anew")
    group.add_argument("--stream", action="store_true", help="show the text while it grows")
    group.add_argument("--batch-size", metavar="ROWS", type=int, help="rows that move at once")
    group.add_argument(
        "--memory", metavar="PREFIXES", type=int, help="prefixes whose evaluation is remembered"
    )
    group.add_argument("--device", help="cpu, cuda, cuda:1, mps (the GPU, where there is one)")
    group.add_argument(
        "--dtype", default="float32", help="float32 (the default), bfloat16, float16, float64 or auto"
    )
    group.add_argument("--threads", metavar="N", type=int, default=1, help="threads of torch (1)")
    group.add_argument(
        "--trust-remote-code",
        dest="remote_code",
        action="store_true",
        help="run code that comes with the model",
    )
    group.add_argument(
        "--recompute", action="store_true", help="evaluate whole prefixes, for models that cannot be rewound"
    )
