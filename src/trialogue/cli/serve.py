"""The command `trialogue serve`: an endpoint of OpenAI's interface whose answers obey rules.

Its options are the fields of `trialogue.serving.settings` and of `trialogue.generation.settings.MachineSettings`.
"""

import argparse
import inspect
import sys

from trialogue.cli.commands import Commands
from trialogue.cli.fields import Group, parse
from trialogue.errors import InputError
from trialogue.start_up import uncollected


def serve(arguments: argparse.Namespace) -> None:
    """Answer requests in OpenAI's interface with a language model: under a rule, by a sampler, many at once.

    Requests are those of /v1/completions and /v1/chat/completions; fields of their own are "rule", "sampler", "top_k",
    "min_p", "max_queries" and "max_steps", and an answer says in "trialogue" what became of each sample.

    Beside the limits below, a rule that a request describes has at most 65536 characters, and the latest 64 rules are
    kept; there are at most 16 stop strings of 256 bytes; a JSON text is validated for at most 1 second, of which a
    pattern takes 0.1.
    """
    with uncollected():
        from trialogue.generation.settings import MachineSettings
        from trialogue.serving.settings import Address, Serving

        options = {"model and limits": Serving, "address": Address, "machine": MachineSettings}
        groups = {title: Group(kind, inspect.getdoc(kind) or "") for title, kind in options.items()}
        parsed = parse(
            groups,
            arguments.overrides,
            prog="trialogue serve",
            description=inspect.getdoc(serve) or "",
            unknown="the command does not have it",
        )
        try:
            import starlette
            import uvicorn
        except ModuleNotFoundError as error:
            hint = "it is not installed: pip install 'trialogue[serve]'"
            raise InputError("package", error.name, hint) from None
        del starlette, uvicorn

        import torch

        from trialogue.serving import server

    torch.set_num_threads(parsed["machine"].threads)
    server.serve(
        parsed["model and limits"],
        parsed["address"],
        parsed["machine"],
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )


def add(commands: Commands) -> None:
    """Add the command."""
    commands.add("serve", serve, fields=True, add_help=False)
