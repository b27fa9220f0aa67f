"""What `trialogue serve` is asked for: every option is a field here, and its help the field's docstring."""

import re
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval
from tyro.conf import arg

from trialogue.errors import InputError
from trialogue.validation import Count, NonNegative, validated

_NAME = re.compile(r"\*|(\*\.)?[\w.-]+|\[[0-9a-fA-F:.]+\]")


@validated
@dataclass(frozen=True)
class Serving:
    """The model, and the limits of requests."""

    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """Hub id, folder, GGUF file, or a name of `trialogue models list`."""
    name: Annotated[str | None, arg(metavar="NAME")] = None
    """Serve the model under this name (MODEL)."""
    rule: Annotated[tuple[str, ...], arg(metavar="NAME=SPEC")] = ()
    """Offer a verifier that clients may name as their "rule", such as short=python:rules.py:short; may come again.
    Files are read for these rules only: a client cannot name a file."""
    context: Annotated[int, Ge(2), arg(metavar="TOKENS")] = 1024
    """Limit prompt and completion together to this many tokens; less if the model has fewer positions. Keys and values
    of this many tokens are stored for each of --batch-size rows (16), and for every sampler in use."""
    samplers: Annotated[Count, arg(metavar="N")] = 4
    """Run at most this many samplers (names with their options) at once; requests for others wait."""
    max_new_tokens: Annotated[Count, arg(metavar="TOKENS")] = 512
    """Limit completions to this many tokens, which is also the default of a chat."""
    max_steps: Annotated[Count, arg(metavar="N")] = 65536
    """Limit each sample to this many steps of its sampler, which is also the default."""
    verifier_whole: bool = False
    """Let the functions of --rule judge complete texts only; prefixes are accepted."""
    verifier_timeout: Annotated[NonNegative, arg(metavar="SECONDS")] = 10.0
    """Reject a text if a function of --rule takes longer than this many seconds, in which all requests wait. 0 sets no
    limit."""
    samples: Annotated[Count, arg(metavar="N")] = 64
    """Limit a request to this many samples: its prompts times its n."""
    requests: Annotated[Count, arg(metavar="N")] = 128
    """Accept this many requests at once, running or waiting, and compile as many rules; further requests get the status
    429."""
    body: Annotated[Count, arg(metavar="BYTES")] = 1 << 20
    """Limit the body of a request to this many bytes; a larger one gets the status 413."""

    def __post_init__(self) -> None:
        if self.model is None:
            hint = "name one: a hub id, a folder, or one of `trialogue models list`"
            raise InputError("model", None, hint)
        for rule in self.rule:
            name, _, spec = rule.partition("=")
            if not name or ":" in name or not spec:
                raise InputError("rule", rule, "write it as NAME=KIND:CONTENT")

    @property
    def called(self) -> str:
        """What clients call the model."""
        return str(self.model) if self.name is None else self.name

    @property
    def rules(self) -> dict[str, str]:
        """The specs of the rules that clients may name."""
        return {name: spec for name, _, spec in (rule.partition("=") for rule in self.rule)}


@validated
@dataclass(frozen=True)
class Address:
    """The address of the server, and who may use it."""

    host: Annotated[str, arg(metavar="HOST")] = "127.0.0.1"
    """Listen at this address; the default is reached from this machine only."""
    port: Annotated[int, Interval(ge=0, le=65535), arg(metavar="PORT")] = 8000
    """Listen at this port; 0 takes any that is free."""
    allowed_host: Annotated[tuple[str, ...], arg(metavar="NAME")] = ()
    """Accept requests to this name, as well as to localhost and HOST; may come again; *.example.org means every name
    below it, * every name. Requests to other names get the status 400. Without this option a HOST that others can reach
    accepts every name."""
    api_key: Annotated[str | None, arg(metavar="KEY")] = None
    """Require clients to send "Authorization: Bearer KEY" ($TRIALOGUE_API_KEY; none)."""
    grace: Annotated[NonNegative, arg(metavar="SECONDS")] = 30.0
    """Wait this many seconds for running requests when the server is stopped."""

    def __post_init__(self) -> None:
        for name in self.allowed_host:
            if not _NAME.fullmatch(name):
                hint = "write a name without scheme and port, such as example.org, *.example.org or *"
                raise InputError("allowed_host", name, hint)
        if self.api_key == "":
            raise InputError("api_key", "", "give a key that is not empty, or leave it out")
