"""The command `trialogue serve`."""

import argparse
import inspect
import sys

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.fields import Group, parse
from trialogue.errors import InputError
from trialogue.start_up import pause_collector


def serve(arguments: argparse.Namespace) -> None:
    """Serve a language model over an OpenAI-compatible HTTP interface, with constraints and samplers.

    The endpoints are /v1/completions, /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/models, /tokenize,
    /detokenize, /tokenizer_info, /metrics and /health. Requests may also contain "rule" (a verifier),
    "sampler", "top_k", "min_p", "max_queries" and "max_steps". Responses report the outcome and the cost of each sample
    under "trialogue".

    Fixed limits: a verifier in a request has at most 65536 characters, and the 64 most recent ones are cached. A
    request has at most 16 stop strings of 256 bytes. Validating a JSON text takes at most 1 second, and matching one
    pattern at most 0.1 seconds.
    """
    with pause_collector():
        from trialogue.generation.settings import MachineSettings
        from trialogue.serving.settings import Address, Serving

        options = {"model and limits": Serving, "address": Address, "machine": MachineSettings}
        groups = {title: Group(kind, inspect.getdoc(kind) or "") for title, kind in options.items()}
        parsed = parse(
            groups,
            arguments.overrides,
            prog="trialogue serve",
            description=inspect.getdoc(serve) or "",
            unknown="unknown option",
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
        report=lambda line: print(line, file=sys.stderr, flush=True),
    )


def add(commands: Commands) -> None:
    """Add the command `trialogue serve` to a parser.

    Args:
        commands: Commands of the parser.
    """
    commands.add("serve", serve, group="Generate", fields=True, add_help=False)
