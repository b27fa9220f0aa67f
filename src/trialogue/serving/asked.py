"""What a request asks for, read off its body."""

import dataclasses
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from trialogue.errors import (
    InputError,
    non_negative_number,
    probability,
    require_text,
    truth_value,
    whole_number,
)
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import SAMPLERS
from trialogue.samplers.prefix.sampler import Sampler
from trialogue.serving.errors import Refused
from trialogue.serving.fields import Fields
from trialogue.serving.formats import format_asked, tools_asked
from trialogue.serving.rules import Rules, Wish
from trialogue.serving.settings import Serving

Kind = Literal["completion", "chat"]
_SHORT = 16
"""Tokens of a completion that does not say, as in OpenAI's interface; a chat gets what the server allows."""
MOST_STOPS = 16
LONGEST_STOP = 256
"""Bytes of a string that stops: automata are built of them"""


@dataclass(frozen=True)
class Asked:
    """A request: `number` samples of each of `prompts` (token ids), by `sampler`, under all of `wishes`.

    `calls` are tools whose calls are answered as such, where the text is one. Other fields are those of the interface.
    """

    kind: Kind
    prompts: tuple[tuple[int, ...], ...]
    sampler: Sampler[Any]
    walk_name: str
    wishes: tuple[Wish, ...]
    calls: Wish | None
    number: int
    max_new_tokens: int
    truncation: dict[str, Any]
    stop: tuple[str, ...]
    seed: int
    log_probs: bool
    stream: bool
    usage: bool
    max_queries: int | None
    max_steps: int
    metadata: dict[str, Any] | None

    @property
    def choices(self) -> int:
        """How many samples the answer has."""
        return self.number * len(self.prompts)

    @property
    def cuts(self) -> bool:
        """Whether tokens are cut off."""
        truncation = self.truncation
        others = truncation["top_k"] is not None or truncation["top_p"] != 1 or truncation["min_p"] != 0
        return others or truncation["temperature"] == 0

    @property
    def in_parts(self) -> bool:
        """Whether the text can be sent while it grows: it is never taken back, and known not to be a call."""
        return self.stream and not self.sampler.goes_back and self.calls is None


def read(
    kind: Kind, body: object, tokenization: Tokenization, rules: Rules, serving: Serving, context: int
) -> Asked:
    """The request in `body`; sequences hold up to `context` tokens.

    Raises `InputError` or `Refused` for whatever of it cannot be honoured.
    """
    fields = Fields(body)
    named = fields.take("model", serving.called)
    if named != serving.called:
        raise Refused(
            404, f"model={named!r}: the model here is {serving.called!r}", "model", "model_not_found"
        )
    tools = fields.take("tools") if kind == "chat" else None
    choice = fields.take("tool_choice") if kind == "chat" else None
    told, calls, required = tools_asked(tools, choice)
    wishes = [*format_asked(fields.take("response_format"), bool(told))]
    wishes += fields.checked("rule", lambda _, value: rules.wishes(value), [])
    wishes += [calls] if calls is not None and required else []
    name, sampler = _walk(fields.take("sampler"), bool(wishes))
    if kind == "chat":
        messages = fields.take("messages")
        prompts = [_conversation(tokenization, messages, told)]
        field = "messages"
    else:
        field, prompts = "prompt", _prompts(fields.take("prompt"), tokenization)
    if not all(prompts):
        raise InputError(field, "", "it has no tokens, and the model has none to begin with: give a text")
    longest = _longest(fields, kind, max(map(len, prompts)), field, serving, context)
    number = fields.checked("n", partial(whole_number, least=1), 1)
    best_of = fields.take("best_of") if kind == "completion" else None
    if best_of not in (None, number):
        raise InputError("best_of", best_of, 'leave it out: {"name": "best-of-n"} is a sampler')
    if number * len(prompts) > serving.samples:
        hint = f"a request may ask for {serving.samples} samples, its prompts times its n"
        raise InputError("n", number, hint)
    stream = fields.flag("stream")
    usage = fields.checked("stream_options", partial(_usage, stream=stream), False)
    asked = Asked(
        kind,
        tuple(map(tuple, prompts)),
        sampler,
        name,
        tuple(wishes),
        calls,
        number,
        longest,
        {
            "temperature": fields.checked("temperature", non_negative_number, 1.0),
            "top_p": fields.checked("top_p", partial(probability, zero=False), 1.0),
            "top_k": fields.checked("top_k", partial(whole_number, least=1), None),
            "min_p": fields.checked("min_p", probability, 0.0),
        },
        _stop(fields.take("stop")),
        fields.checked("seed", partial(whole_number, least=0, most=(1 << 63) - 1), secrets.randbits(53)),
        _log_probs(fields, kind),
        stream,
        usage,
        fields.checked("max_queries", partial(whole_number, least=1), None),
        fields.checked(
            "max_steps", partial(whole_number, least=1, most=serving.max_steps), serving.max_steps
        ),
        fields.checked("metadata", _metadata, None),
    )
    fields.finish()
    if stream and asked.log_probs:
        raise InputError("logprobs", True, "they are known when a sample is finished: leave out stream")
    _require_choice(asked)
    return asked


def _walk(value: object, judged: bool) -> tuple[str, Sampler[Any]]:
    """The sampler that is named, with its options; by default a mask where there is a rule."""
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


def _usage(field: str, value: object, stream: bool) -> bool:
    """Whether the options of a stream ask for its usage."""
    if not isinstance(value, dict) or value.keys() - {"include_usage"}:
        raise InputError(field, value, 'use {"include_usage": true}')
    if not stream:
        raise InputError(field, value, "they are for streams: leave them out")
    return truth_value(f"{field}.include_usage", value.get("include_usage", False))


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


def _metadata(field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(field, value, "give an object")
    require_text(field, json.dumps(value, ensure_ascii=False))
    return value


def _require_choice(asked: Asked) -> None:
    """Raise `InputError` where a sampler would draw the one token that is left for ever."""
    if asked.sampler.uses != "verdicts" or asked.sampler.weighted:
        return
    for name, alone in (("temperature", 0), ("top_k", 1)):
        if asked.truncation[name] == alone:
            hint = f"the sampler {asked.walk_name} would draw the same token again after every rejection"
            raise InputError(name, alone, f"{hint}: leave more than one token to draw from")
