"""Validation of the JSON bodies of requests in the OpenAI API."""

import json
import secrets
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Interval, MaxLen, MinLen
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trialogue.errors import InputError, require_text
from trialogue.generation.settings import SamplerSettings
from trialogue.validation import Count, Natural, NonNegative, Share

Kind = Literal["completion", "chat"]
MOST_STOPS = 16
LONGEST_STOP = 256
"""Maximum length of a stop string in bytes, which bounds the size of its automaton."""

MOST_TOP_TOKENS = 20
"""Maximum number of most probable tokens that are returned for each position."""

Item = TypeVar("Item")
_NonEmptyList = Annotated[list[Item], MinLen(1)]
_Penalty = Annotated[float, Interval(ge=-2, le=2)]
_Bias = Annotated[float, Interval(ge=-100, le=100)]
_Object = dict[str, Any]

IGNORED = frozenset(
    (
        *("cache_salt", "guided_decoding_backend", "guided_whitespace_pattern", "modalities", "prediction"),
        *("priority", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "request_id"),
        *("safety_identifier", "service_tier", "spaces_between_special_tokens", "store", "user", "verbosity"),
    )
)
"""Fields that are accepted and do not affect samples. The response lists them in the header `IGNORED_HEADER`."""
IGNORED_HEADER = "X-Ignored-Parameters"


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool = False
    continuous_usage_stats: bool = False


class Body(BaseModel):
    """Fields of completion requests and of chat requests. A field with the value null counts as missing."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: Any = None
    n: Count = 1
    temperature: NonNegative = 1.0
    top_p: Annotated[float, Interval(gt=0, le=1)] = 1.0
    top_k: Count | None = None
    min_p: Share = 0.0
    stop: Annotated[str, MinLen(1)] | Annotated[list[Annotated[str, MinLen(1)]], MaxLen(MOST_STOPS)] = []
    seed: Annotated[int, Interval(ge=0, lt=1 << 63)] = Field(default_factory=lambda: secrets.randbits(53))
    stream: bool = False
    stream_options: _StreamOptions | None = None
    max_tokens: Count | None = None
    max_queries: Count | None = None
    max_steps: Count | None = None
    metadata: dict[str, Any] | None = None
    response_format: Any = None
    rule: Any = None
    sampler: Any = None
    confidence: bool = False
    # Changes of the distribution of the model, and ends of a completion.
    presence_penalty: _Penalty = 0.0
    frequency_penalty: _Penalty = 0.0
    repetition_penalty: Annotated[float, Interval(gt=0, le=10)] = 1.0
    logit_bias: dict[str, _Bias] = {}
    min_tokens: Natural = 0
    ignore_eos: bool = False
    stop_token_ids: Annotated[list[int], MaxLen(MOST_STOPS)] = []
    # Constraints with the names of vLLM.
    structured_outputs: _Object | None = None
    guided_json: Any = None
    guided_regex: Any = None
    guided_choice: Any = None
    guided_grammar: Any = None
    # Fields that may have only their default value.
    include_stop_str_in_output: Literal[False] = False
    skip_special_tokens: Literal[True] = True

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """Stop strings as a tuple. The field `stop` may also be a single string."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    def sampling(self, sampler: str) -> SamplerSettings:
        """Collect the sampler name, temperature, top-p, top-k and min-p.

        Args:
            sampler: Name of the sampler.
        """
        return SamplerSettings(sampler, self.temperature, self.top_p, self.top_k, self.min_p)


class CompletionBody(Body):
    """Fields of a request to /v1/completions."""

    prompt: str | _NonEmptyList[str] | _NonEmptyList[int] | _NonEmptyList[list[int]]
    best_of: Count | None = None
    max_tokens: Natural | None = None
    logprobs: Annotated[int, Interval(ge=0, le=MOST_TOP_TOKENS)] | None = None
    echo: bool = False

    @property
    def scores_tokens(self) -> bool:
        """Whether the response has log-probabilities of tokens."""
        return self.logprobs is not None

    @property
    def num_top_tokens(self) -> int:
        """Number of most probable tokens to return for each position."""
        return self.logprobs or 0


class ChatBody(Body):
    """Fields of a request to /v1/chat/completions."""

    messages: Any = None
    tools: Any = None
    tool_choice: Any = None
    max_completion_tokens: Count | None = None
    parallel_tool_calls: bool | None = None
    chat_template_kwargs: _Object = {}
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Interval(ge=0, le=MOST_TOP_TOKENS)] = 0

    @property
    def scores_tokens(self) -> bool:
        """Whether the response has log-probabilities of tokens."""
        return bool(self.logprobs)

    @property
    def num_top_tokens(self) -> int:
        """Number of most probable tokens to return for each position."""
        return self.top_logprobs


_UNSUPPORTED = "leave it out: it is not supported"
_NUMBER = "use a number from {} to {}"
_HINTS = {
    "prompt": "use a string, a list of strings, a list of token ids, or a list of such lists",
    "stop": f"use a string or a list of at most {MOST_STOPS} strings, none of them empty",
    "stream_options": 'use {"include_usage": true}, and "continuous_usage_stats" to report it in every chunk',
    "chat_template_kwargs": "use an object with variables of the chat template",
    "structured_outputs": 'use an object such as {"regex": "[0-9]+"}',
    "metadata": "use an object",
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), _NUMBER.format(-2, 2)),
    "logit_bias": 'use an object such as {"5": -100}, with token ids and numbers from -100 to 100',
    "stop_token_ids": f"use a list of at most {MOST_STOPS} token ids",
    **dict.fromkeys(("include_stop_str_in_output", "skip_special_tokens"), _UNSUPPORTED),
}


def ignored_parameters(body: object) -> list[str]:
    """Return the names of the fields of a request that do not affect samples.

    Args:
        body: Parsed JSON value.
    """
    given = body if isinstance(body, Mapping) else {}
    return sorted(name for name in IGNORED & given.keys() if given[name] is not None)


def read_body(kind: Kind, body: object) -> CompletionBody | ChatBody:
    """Validate the JSON body of a request.

    Args:
        kind: "completion" or "chat".
        body: Parsed JSON value.

    Returns:
        The fields of the request, with defaults for missing fields.

    Raises:
        InputError: If a field is unknown, unsupported or invalid.
    """
    if not isinstance(body, Mapping):
        raise InputError("body", body, "send a JSON object")
    if body.get("modalities") not in (None, ["text"]):
        raise InputError("modalities", body["modalities"], 'use ["text"]')
    given = {name: value for name, value in body.items() if value is not None and name not in IGNORED}
    fields: type[CompletionBody] | type[ChatBody] = CompletionBody if kind == "completion" else ChatBody
    try:
        read = fields.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = str(fault["loc"][0])
        hint = _HINTS.get(field, fault["msg"].removeprefix("Input "))
        if fault["type"] == "extra_forbidden":
            close = get_close_matches(field, fields.model_fields, n=1)
            hint = f"it is not supported: did you mean {close[0]}?" if close else _UNSUPPORTED
        raise InputError(field, given.get(field), hint) from None
    if isinstance(read, ChatBody) and read.top_logprobs and not read.logprobs:
        raise InputError("top_logprobs", read.top_logprobs, 'add "logprobs": true')
    for text in read.stop_strings:
        require_text("stop", text)
        if len(text.encode()) > LONGEST_STOP:
            raise InputError("stop", text, f"use strings of at most {LONGEST_STOP} bytes")
    require_text("metadata", json.dumps(read.metadata, ensure_ascii=False))
    return read
