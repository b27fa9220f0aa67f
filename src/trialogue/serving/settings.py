"""Options of `trialogue serve`. Each field is an option, and its docstring is the help text."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Interval
from tyro.conf import arg

from trialogue.errors import InputError, require_model
from trialogue.validation import Count, Natural, NonNegative, validated

_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/\s]+")
_NAME = re.compile(r"\*|(\*\.)?[\w.-]+|\[[0-9a-fA-F:.]+\]")


@validated
@dataclass(frozen=True)
class Serving:
    """Options on the model and on the limits of requests."""

    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """Load this model: a Hugging Face id, a folder, a GGUF file, or a name from `trialogue models list`."""
    name: Annotated[str | None, arg(metavar="NAME")] = None
    """Serve the model under this name (default: MODEL)."""
    rule: Annotated[tuple[str, ...], arg(metavar="NAME=SPEC")] = ()
    """Offer this verifier to clients under NAME, as in short=python:rules.py:short. Repeat the option for more. Only
    verifiers given here may read files; a client cannot name a file."""
    context: Annotated[int | None, Ge(2), arg(metavar="TOKENS")] = None
    """Limit prompt plus completion to this many tokens (default: the context of the model, or less if the keys and
    values of --batch-size sequences of this length would need more than half of the free memory)."""
    samplers: Annotated[Count, arg(metavar="N")] = 4
    """Run at most this many sampler configurations at once. Requests for others wait."""
    max_new_tokens: Annotated[Count | None, arg(metavar="TOKENS")] = None
    """Limit completions to this many tokens, also if a request has a larger limit. Also the default limit of a chat
    completion (default: the rest of the context)."""
    max_steps: Annotated[Count, arg(metavar="N")] = 65536
    """Limit each sample to this many steps of its sampler. Also the default of a request."""
    verifier_whole: bool = False
    """Call functions of --rule on complete texts only, and accept every prefix."""
    verifier_timeout: Annotated[NonNegative, arg(metavar="SECONDS")] = 10.0
    """Reject a text if a function of --rule takes longer than this many seconds. All requests wait meanwhile. 0 means
    no limit."""
    samples: Annotated[Count, arg(metavar="N")] = 64
    """Limit a request to this many samples (prompts times n)."""
    requests: Annotated[Count, arg(metavar="N")] = 128
    """Accept this many running or waiting requests, and compile as many verifiers. Further requests get status 429."""
    table_prefixes: Annotated[Natural, arg(metavar="N")] = 1 << 17
    """Keep tables of this many prefixes for the sampler exact (about 1 kB each). Requests without a seed share them.
    Beyond N, the least recently used are forgotten, which costs model calls. 0 keeps none."""
    body: Annotated[Count, arg(metavar="BYTES")] = 1 << 20
    """Limit the body of a request to this many bytes. Larger requests get status 413."""

    def __post_init__(self) -> None:
        require_model(self.model)
        for rule in self.rule:
            name, _, spec = rule.partition("=")
            if not name or ":" in name or not spec:
                raise InputError("rule", rule, "write it as NAME=KIND:CONTENT")

    @property
    def model_name(self) -> str:
        """Name that clients use for the model.

        This is the option `name`, or the option `model` if no name is given.
        """
        return str(self.model) if self.name is None else self.name

    @property
    def rules(self) -> dict[str, str]:
        """Specs KIND:CONTENT of the named verifiers, which clients can use by their names."""
        return {name: spec for name, _, spec in (rule.partition("=") for rule in self.rule)}


@validated
@dataclass(frozen=True)
class Address:
    """Options on the network address and on access."""

    host: Annotated[str, arg(metavar="HOST")] = "127.0.0.1"
    """Listen on this address. The default accepts connections from this machine only."""
    port: Annotated[int, Interval(ge=0, le=65535), arg(metavar="PORT")] = 8000
    """Listen on this port. 0 selects a free port."""
    allowed_host: Annotated[tuple[str, ...], arg(metavar="NAME")] = ()
    """Accept requests to this host name, in addition to localhost and HOST; *.example.org matches subdomains and *
    matches everything. Repeat the option for more names. Other requests get status 400. Without this option, a HOST
    that other machines can reach accepts every name."""
    allow_origin: Annotated[tuple[str, ...], arg(metavar="ORIGIN")] = ()
    """Accept requests from web pages of this origin, such as https://example.org; * accepts all. Repeat the option for
    more origins."""
    api_key: Annotated[str | None, arg(metavar="KEY")] = None
    """Require the header "Authorization: Bearer KEY" (default: $TRIALOGUE_API_KEY, if set)."""
    api_keys: Annotated[Path | None, arg(metavar="FILE")] = None
    """Accept the keys in this file, one per line, in addition to --api-key. Empty lines and lines that begin with # are
    skipped."""
    grace: Annotated[NonNegative, arg(metavar="SECONDS")] = 30.0
    """Wait this many seconds for running requests before the server stops."""

    def __post_init__(self) -> None:
        for name in self.allowed_host:
            if not _NAME.fullmatch(name):
                hint = "use a name without scheme and port, for example example.org, *.example.org or *"
                raise InputError("allowed_host", name, hint)
        for origin in self.allow_origin:
            if not _ORIGIN.fullmatch(origin):
                hint = "use a scheme and a host without a path, for example https://example.org, or *"
                raise InputError("allow_origin", origin, hint)
        if self.api_key == "":
            raise InputError("api_key", "", "use a key that is not empty, or leave it out")

    def keys(self, default: str | None = None) -> list[str]:
        """Return the keys of the options `api_key` and `api_keys`, of which clients must send one.

        Args:
            default: Key that is used if the option `api_key` is not given.

        Raises:
            InputError: If the file cannot be read or has no keys.
        """
        key = default if self.api_key is None else self.api_key
        keys = [] if key is None else [key]
        if self.api_keys is None:
            return keys
        try:
            lines = self.api_keys.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            hint = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
            raise InputError("api_keys", str(self.api_keys), hint) from None
        listed = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not listed:
            raise InputError("api_keys", str(self.api_keys), "use a file with at least one key")
        return [*keys, *listed]
