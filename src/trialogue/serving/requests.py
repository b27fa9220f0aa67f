"""The requests that clients send, read from their bodies."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trialogue.errors import InputError, require_text
from trialogue.generation.settings import SamplerSettings
from trialogue.models.hub.opening import TextModel
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import SAMPLERS
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.serving.body import ChatBody, CompletionBody, Kind, read_body
from trialogue.serving.errors import Refused
from trialogue.serving.formats import format_asked, tools_asked
from trialogue.serving.settings import Serving
from trialogue.serving.verifiers import RequestedVerifier, VerifierCache

_SHORT = 16
"""Default length of a completion in tokens, as in OpenAI's interface; a chat gets what the server allows."""


@dataclass(frozen=True)
class CompletionRequest:
    """A request with the fields of `body`: samples of `prompts` (token ids), under all verifiers of `wishes`.

    If `calls` is given, texts that are calls of these tools are returned as such.
    """

    body: CompletionBody | ChatBody
    prompts: Sequence[Sequence[int]]
    sampler: Sampler[Any]
    sampling: SamplerSettings
    wishes: Sequence[RequestedVerifier]
    calls: RequestedVerifier | None
    max_new_tokens: int
    max_steps: int

    @property
    def choices(self) -> int:
        """How many samples the answer has."""
        return self.body.n * len(self.prompts)

    @property
    def log_probs(self) -> bool:
        """Whether the answer has the log-probabilities of the tokens; a completion asks for them by 0."""
        return self.body.logprobs is not None and self.body.logprobs is not False

    @property
    def in_parts(self) -> bool:
        """Whether the text can be sent while it grows: no token is taken back, and it is not a call."""
        return self.body.stream and not self.sampler.goes_back and self.calls is None


def read(
    kind: Kind, content: object, model: TextModel, verifiers: VerifierCache, serving: Serving, context: int
) -> CompletionRequest:
    """Return the request in `content`, a JSON value, of sequences of up to `context` tokens.

    Raises `InputError` or `Refused` for every part of it that cannot be honoured.
    """
    body = read_body(kind, content)
    if body.model not in (None, serving.called):
        message = f"model={body.model!r}: the model here is {serving.called!r}"
        raise Refused(404, message, "model", "model_not_found")
    wishes = format_asked(body.response_format, isinstance(body, ChatBody) and bool(body.tools))
    wishes += [] if body.rule is None else verifiers.wishes(body.rule)
    calls = None
    if isinstance(body, ChatBody):
        field, (tools, calls, required) = "messages", tools_asked(body.tools, body.tool_choice)
        wishes += [calls] if calls is not None and required else []
        prompts = [_conversation(model.tokenization, body.messages, tools)]
    else:
        field, prompts = "prompt", _prompts(body.prompt, model.tokenization)
    if not all(prompts):
        if model.empty_prompt is None:
            hint = "it has no tokens, and the model has none to begin with: give a text"
            raise InputError(field, "", hint)
        prompts = [prompt or list(model.empty_prompt) for prompt in prompts]
    name, sampler = _sampler(body.sampler, bool(wishes))
    sampling = body.sampling(name)
    sampling.require_choice(sampler)
    longest = _longest(body, max(map(len, prompts)), field, serving, context)
    steps = serving.max_steps if body.max_steps is None else body.max_steps
    request = CompletionRequest(body, prompts, sampler, sampling, tuple(wishes), calls, longest, steps)
    if isinstance(body, CompletionBody) and body.best_of not in (None, body.n):
        raise InputError("best_of", body.best_of, 'leave it out: {"name": "best-of-n"} is a sampler')
    if request.choices > serving.samples:
        hint = f"a request may ask for {serving.samples} samples, its prompts times its n"
        raise InputError("n", body.n, hint)
    if steps > serving.max_steps:
        raise InputError("max_steps", steps, f"use at most {serving.max_steps}")
    if body.stream and request.log_probs:
        raise InputError("logprobs", True, "they are known when a sample is finished: leave out stream")
    if body.stream_options is not None and not body.stream:
        raise InputError("stream_options", {}, "they are for streams: leave them out")
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


def _prompts(value: str | Sequence[Any], tokenization: Tokenization) -> list[list[int]]:
    several = [value] if isinstance(value, str) or isinstance(value[0], int) else value
    for text in several:
        if isinstance(text, str):
            require_text("prompt", text)
    prompts = [tokenization.encode(one) if isinstance(one, str) else list(one) for one in several]
    for token in (token for prompt in prompts for token in prompt):
        if not 0 <= token < tokenization.vocab_size:
            hint = f"the model has the tokens 0 to {tokenization.vocab_size - 1}"
            raise InputError("prompt", token, hint)
    return prompts


def _longest(body: CompletionBody | ChatBody, prompt: int, field: str, serving: Serving, context: int) -> int:
    """Return the longest completion, of prompts of up to `prompt` tokens."""
    if prompt >= context:
        message = f"{field}: it has {prompt} tokens, and the context holds {context}: shorten it"
        raise Refused(400, message, field, "context_length_exceeded")
    name, value, default = "max_tokens", body.max_tokens, _SHORT
    if isinstance(body, ChatBody):
        default, other = serving.max_new_tokens, body.max_completion_tokens
        if other is not None and value not in (None, other):
            hint = "max_completion_tokens is given too: leave out one of them"
            raise InputError("max_tokens", value, hint)
        if other is not None:
            name, value = "max_completion_tokens", other
    if value is None:
        return min(default, context - prompt)
    if value > serving.max_new_tokens:
        raise InputError(name, value, f"use at most {serving.max_new_tokens}")
    if prompt + value > context:
        message = f"{name}={value}: the prompt has {prompt} tokens, and the context holds {context}"
        raise Refused(400, message, name, "context_length_exceeded")
    return value
