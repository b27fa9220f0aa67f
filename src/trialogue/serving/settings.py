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
    """The model, and what clients may ask of it."""

    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """Hub id, folder, GGUF file, or a name of `trialogue models list`."""
    name: Annotated[str | None, arg(metavar="NAME")] = None
    """What clients call the model (MODEL)."""
    rule: Annotated[tuple[str, ...], arg(metavar="NAME=SPEC")] = ()
    """A verifier that clients may name as their "rule", such as short=python:rules.py:short; may come again. Files
    are read of these rules alone: what clients send is never a file's name."""
    context: Annotated[int, Ge(2), arg(metavar="TOKENS")] = 1024
    """Longest sequence, prompt and completion; less where the model knows fewer positions. Keys and values are kept for
    so many tokens of each of --batch-size rows (16), for every sampler that is under way."""
    samplers: Annotated[Count, arg(metavar="N")] = 4
    """Samplers (names with their options) that are under way at once; requests for others wait."""
    max_new_tokens: Annotated[Count, arg(metavar="TOKENS")] = 512
    """Longest completion that may be asked for, and that of a chat that does not say."""
    max_steps: Annotated[Count, arg(metavar="N")] = 65536
    """Most moves of a sample that may be asked for, and the most where a request does not say."""
    verifier_whole: bool = False
    """A --rule's function judges complete texts only, prefixes are accepted."""
    verifier_timeout: Annotated[NonNegative, arg(metavar="SECONDS")] = 10.0
    """The longest that one answer of a --rule's function may take, for which all wait; what it was asked about is then
    rejected. 0: as long as it likes."""
    samples: Annotated[Count, arg(metavar="N")] = 64
    """Most samples of one request: its prompts times its n."""
    requests: Annotated[Count, arg(metavar="N")] = 128
    """Requests under way and waiting, and as many rules that are being compiled; what comes beyond either is answered
    429."""
    body: Annotated[Count, arg(metavar="BYTES")] = 1 << 20
    """Largest body of a request; a larger one is answered 413."""

    def __post_init__(self) -> None:
        if self.model is None:
            hint = "name one: a hub id, a folder, or one of `trialogue models list`"
            raise InputError("model", None, hint)
        for rule in self.rule:
            name, _, spec = rule.partition("=")
            if not name or ":" in name or ":" not in spec:
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
    """Where clients find the server, and which."""

    host: Annotated[str, arg(metavar="HOST")] = "127.0.0.1"
    """Address to listen at: by default that of this machine alone."""
    port: Annotated[int, Interval(ge=0, le=65535), arg(metavar="PORT")] = 8000
    """0 is any that is free."""
    allowed_host: Annotated[tuple[str, ...], arg(metavar="NAME")] = ()
    """A name that clients may call the server by, beside localhost and HOST; may come again; *.example.org is any below
    that, * any. Requests to other names are answered 400. Without it a HOST that others can reach has any name."""
    api_key: Annotated[str | None, arg(metavar="KEY")] = None
    """What clients have to send as "Authorization: Bearer KEY" ($TRIALOGUE_API_KEY; none)."""
    grace: Annotated[NonNegative, arg(metavar="SECONDS")] = 30.0
    """How long requests under way may take when the server is stopped."""

    def __post_init__(self) -> None:
        for name in self.allowed_host:
            if not _NAME.fullmatch(name):
                hint = "write a name without scheme and port, such as example.org, *.example.org or *"
                raise InputError("allowed_host", name, hint)
        if self.api_key == "":
            raise InputError("api_key", "", "give a key that is not empty, or leave it out")
