"""The requests that clients send, read from their bodies."""

import dataclasses
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Interval

from trialogue.errors import InputError, require_text, truth_value, whole_number
from trialogue.generation.settings import TRUNCATION, SamplerSettings
from trialogue.models.opening import TextModel
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import SAMPLERS
from trialogue.samplers.prefix.sampler import Sampler
from trialogue.serving.errors import Refused
from trialogue.serving.fields import Fields
from trialogue.serving.formats import format_asked, tools_asked
from trialogue.serving.settings import Serving
from trialogue.serving.verifiers import RequestedVerifier, VerifierCache
from trialogue.validation import Count, validated

Kind = Literal["completion", "chat"]
_SHORT = 16
"""Default length of a completion in tokens, as in OpenAI's interface; a chat gets what the server allows."""
MOST_STOPS = 16
LONGEST_STOP = 256
"""Maximum length of a stop string in bytes: automata are built of them."""


@validated
@dataclass(frozen=True)
class CompletionRequest:
    """A request: `n` samples of each of `prompts` (token ids), under all verifiers of `wishes`.

    If `calls` is given, texts that are calls of these tools are returned as such. Other fields are those of OpenAI's
    interface.
    """

    kind: Kind
    prompts: Sequence[Sequence[int]]
    sampler: Sampler[Any]
    sampling: SamplerSettings
    wishes: Sequence[RequestedVerifier]
    calls: RequestedVerifier | None
    max_new_tokens: int
    stop: tuple[str, ...]
    log_probs: bool
    usage: bool
    max_steps: Count
    seed: Annotated[int, Interval(ge=0, lt=1 << 63)]
    n: Count = 1
    stream: bool = False
    max_queries: Count | None = None
    metadata: Any = None

    def __post_init__(self) -> None:
        self.sampling.require_choice(self.sampler)
        if self.stream and self.log_probs:
            hint = "they are known when a sample is finished: leave out stream"
            raise InputError("logprobs", True, hint)
        if self.usage and not self.stream:
            raise InputError("stream_options", self.usage, "they are for streams: leave them out")
        if self.metadata is not None:
            if not isinstance(self.metadata, dict):
                raise InputError("metadata", self.metadata, "give an object")
            require_text("metadata", json.dumps(self.metadata, ensure_ascii=False))

    @property
    def choices(self) -> int:
        """How many samples the answer has."""
        return self.n * len(self.prompts)

    @property
    def in_parts(self) -> bool:
        """Whether the text can be sent while it grows: no token is taken back, and it is not a call."""
        return self.stream and not self.sampler.goes_back and self.calls is None


def read(
    kind: Kind, body: object, model: TextModel, verifiers: VerifierCache, serving: Serving, context: int
) -> CompletionRequest:
    """Return the request in `body`, of sequences of up to `context` tokens.

    Raises `InputError` or `Refused` for every part of it that cannot be honoured.
    """
    fields = Fields(body)
    named = fields.take("model", serving.called)
    if named != serving.called:
        message = f"model={named!r}: the model here is {serving.called!r}"
        raise Refused(404, message, "model", "model_not_found")
    tools = fields.take("tools") if kind == "chat" else None
    choice = fields.take("tool_choice") if kind == "chat" else None
    told, calls, required = tools_asked(tools, choice)
    wishes = format_asked(fields.take("response_format"), bool(told))
    rule = fields.take("rule")
    wishes += [] if rule is None else verifiers.wishes(rule)
    wishes += [calls] if calls is not None and required else []
    name, sampler = _sampler(fields.take("sampler"), bool(wishes))
    field = "messages" if kind == "chat" else "prompt"
    value = fields.take(field)
    if kind == "chat":
        prompts = [_conversation(model.tokenization, value, told)]
    else:
        prompts = _prompts(value, model.tokenization)
    if not all(prompts):
        if model.empty_prompt is None:
            hint = "it has no tokens, and the model has none to begin with: give a text"
            raise InputError(field, "", hint)
        prompts = [prompt or list(model.empty_prompt) for prompt in prompts]
    best_of = fields.take("best_of") if kind == "completion" else None
    request = CompletionRequest(
        kind=kind,
        prompts=prompts,
        sampler=sampler,
        sampling=SamplerSettings(sampler=name, **fields.given(*TRUNCATION)),
        wishes=tuple(wishes),
        calls=calls,
        max_new_tokens=_longest(fields, kind, max(map(len, prompts)), field, serving, context),
        stop=_stop(fields.take("stop")),
        log_probs=_log_probs(fields, kind),
        usage=_usage(fields.take("stream_options")),
        **{"seed": secrets.randbits(53), "max_steps": serving.max_steps}
        | fields.given("n", "seed", "stream", "max_queries", "max_steps", "metadata"),
    )
    fields.finish()
    if best_of not in (None, request.n):
        raise InputError("best_of", best_of, 'leave it out: {"name": "best-of-n"} is a sampler')
    if request.choices > serving.samples:
        hint = f"a request may ask for {serving.samples} samples, its prompts times its n"
        raise InputError("n", request.n, hint)
    if request.max_steps > serving.max_steps:
        raise InputError("max_steps", request.max_steps, f"use at most {serving.max_steps}")
    return request


def _sampler(value: object, judged: bool) -> tuple[str, Sampler[Any]]:
    """Return the name of a sampler and the sampler with its options; by default a mask if there is a rule."""
    if value is None:
        value = "masked-decoding" if judged else "ancestral"
    options = {"name": value} if isinstance(value, str) else value
    if not isinstance(options, dict) or options.get("name") not in SAMPLERS:
        names = ", ".join(SAMPLERS)
        raise InputError("sampler", value, f'give a name, or {{"name": NAME}} and its options: {names}')
    name, kind = options["name"], SAMPLERS[options["name"]]
    known: list[str] = (
        [one.name for one in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    )
    chosen = {key: option for key, option in options.items() if key != "name"}
    for key in chosen:
        if key not in known:
            raise InputError(
                f"sampler.{key}", chosen[key], f"the options of {name} are {', '.join(known) or 'none'}"
            )
    try:
        sampler = kind(**{key: tuple(one) if isinstance(one, list) else one for key, one in chosen.items()})
        hash(sampler)
    except InputError as error:
        raise InputError(f"sampler.{error.field}", error.value, error.hint) from None
    except TypeError:
        raise InputError(
            "sampler", value, "its options are numbers, texts, truth values or lists of these"
        ) from None
    if not sampler.keeps_prompts:
        raise InputError(
            "sampler", value, "it may erase the prompt: an answer cannot say what became of that"
        )
    if sampler.uses != "nothing" and not judged:
        raise InputError("sampler", value, "it needs a verifier: give a rule, a response_format or tools")
    return name, sampler


def _conversation(tokenization: Tokenization, messages: Any, tools: list[Any] | None) -> list[int]:
    require_text("messages", json.dumps([messages, tools], ensure_ascii=False))
    if isinstance(messages, str):
        raise InputError("messages", messages, 'give a list of objects with a "role" and a "content"')
    try:
        return tokenization.chat(messages, tools=tools)
    except InputError as error:
        field = error.field if error.field.startswith("messages") else "messages"
        raise InputError(field, error.value, error.hint) from error


def _prompts(value: object, tokenization: Tokenization) -> list[list[int]]:
    hint = "give a text, a list of texts, token ids, or a list of lists of those"
    if isinstance(value, str):
        return [_encoded(value, tokenization)]
    if not isinstance(value, list) or not value:
        raise InputError("prompt", value, hint)
    if all(isinstance(one, str) for one in value):
        return [_encoded(one, tokenization) for one in value]
    lists = [value] if all(isinstance(one, int) for one in value) else value
    for one in lists:
        if not isinstance(one, list):
            raise InputError("prompt", value, hint)
        for token in one:
            whole_number("prompt", token, 0, tokenization.vocab_size - 1)
    return lists


def _encoded(text: str, tokenization: Tokenization) -> list[int]:
    require_text("prompt", text)
    return tokenization.encode(text)


def _longest(fields: Fields, kind: Kind, prompt: int, field: str, serving: Serving, context: int) -> int:
    """The longest completion, of prompts of up to `prompt` tokens."""
    if prompt >= context:
        message = f"{field}: it has {prompt} tokens, and the context holds {context}: shorten it"
        raise Refused(400, message, field, "context_length_exceeded")
    names = ("max_tokens", "max_completion_tokens") if kind == "chat" else ("max_tokens",)
    given = {name: value for name in names if (value := fields.take(name)) is not None}
    if not given:
        return min(_SHORT if kind == "completion" else serving.max_new_tokens, context - prompt)
    for name, value in given.items():
        whole_number(name, value, 1, serving.max_new_tokens)
    if len(set(given.values())) > 1:
        hint = "max_completion_tokens is given too: leave out one of them"
        raise InputError("max_tokens", given["max_tokens"], hint)
    [(name, value), *_] = given.items()
    if prompt + value > context:
        message = f"{name}={value}: the prompt has {prompt} tokens, and the context holds {context}"
        raise Refused(400, message, name, "context_length_exceeded")
    return int(value)


def _usage(value: object) -> bool:
    """Return whether the options of a stream ask for its usage."""
    if value is None:
        return False
    if not isinstance(value, dict) or value.keys() - {"include_usage"}:
        raise InputError("stream_options", value, 'use {"include_usage": true}')
    return truth_value("stream_options.include_usage", value.get("include_usage", False))


def _stop(value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) and text for text in texts):
        raise InputError("stop", value, "give a text, or a list of texts, none of them empty")
    if len(texts) > MOST_STOPS:
        raise InputError("stop", len(texts), f"give at most {MOST_STOPS} texts")
    for text in texts:
        require_text("stop", text)
        if len(text.encode()) > LONGEST_STOP:
            raise InputError("stop", text, f"use texts of at most {LONGEST_STOP} bytes")
    return tuple(texts)


def _log_probs(fields: Fields, kind: Kind) -> bool:
    """Whether log-probabilities of the tokens are asked for; those of others are not kept."""
    hint = "only the tokens that are drawn have log-probabilities: use 0"
    value, top = fields.take("logprobs"), fields.take("top_logprobs") if kind == "chat" else None
    if top not in (None, 0):
        raise InputError("top_logprobs", top, hint)
    if value is None:
        return False
    if kind == "chat":
        return truth_value("logprobs", value)
    whole_number("logprobs", value, 0, 0, hint)
    return True
