"""Conversion of request bodies to validated requests."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trialogue.errors import InputError, require_text
from trialogue.generation.settings import SamplerSettings
from trialogue.generation.verifiers.kinds import KINDS
from trialogue.models.hub.opening import TextModel
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import SAMPLERS, AdaptiveRejection
from trialogue.samplers.penalties import Penalties
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.serving.body import ChatBody, CompletionBody, Kind, read_body
from trialogue.serving.errors import RequestError
from trialogue.serving.formats import read_response_format, read_structured_outputs, read_tools
from trialogue.serving.penalties import read_penalties, read_stop_tokens
from trialogue.serving.settings import Serving
from trialogue.serving.verifiers import RequestedVerifier, VerifierCache

_DEFAULT_MAX_TOKENS = 16
"""Default length of a text completion in tokens, as in the OpenAI API."""


@dataclass(frozen=True)
class CompletionRequest:
    """A validated request for completions or chat completions.

    Args:
        body: Fields of the request.
        prompts: Token ids of each prompt.
        sampler: Sampler that generates the samples.
        sampling: Sampler name, temperature and truncation.
        requested_verifiers: Verifiers that the samples must satisfy.
        calls: Verifier that accepts tool calls, or None. A text that it accepts is returned as a tool call.
        max_new_tokens: Maximum number of tokens per completion.
        max_steps: Maximum number of sampler steps per sample.
        stop_tokens: Tokens that end a completion, in addition to the end-of-sequence token.
        penalties: Change of the distribution of the model, or None.
        shares_tables: Whether samples start from rejection tables of earlier requests.
    """

    body: CompletionBody | ChatBody
    prompts: Sequence[Sequence[int]]
    sampler: Sampler[Any]
    sampling: SamplerSettings
    requested_verifiers: Sequence[RequestedVerifier]
    calls: RequestedVerifier | None
    max_new_tokens: int
    max_steps: int
    stop_tokens: tuple[int, ...]
    penalties: Penalties | None
    shares_tables: bool

    @property
    def choices(self) -> int:
        """Number of samples of the response, which is `n` for each prompt."""
        return self.body.n * len(self.prompts)

    @property
    def echoes(self) -> bool:
        """Whether the texts of the response begin with the prompt."""
        return isinstance(self.body, CompletionBody) and self.body.echo

    @property
    def is_scored(self) -> bool:
        """Whether finished samples need log-probabilities of the prompt or of the most probable tokens."""
        return self.body.scores_tokens and (self.echoes or self.body.num_top_tokens > 0)

    @property
    def is_evaluated(self) -> bool:
        """Whether finished samples are evaluated again, for log-probabilities or for the confidence of fields."""
        return self.is_scored or self.body.confidence

    def prompt_text(self, choice: int, tokenization: Tokenization) -> str:
        """Return the text of the prompt of a sample.

        Args:
            choice: Index of the sample in the response.
            tokenization: Tokenization of the model, which decodes prompts that were given as token ids.
        """
        place, given = choice // self.body.n, getattr(self.body, "prompt", None)
        if isinstance(given, str):
            return given
        text = given[place] if isinstance(given, list) else None
        return text if isinstance(text, str) else tokenization.text(self.prompts[place])

    @property
    def is_incremental(self) -> bool:
        """Whether the text of a sample is sent while it grows.

        This requires a streamed response, a sampler that never removes tokens, no tool calls, no prompt and no
        log-probabilities.
        """
        body = self.body
        is_text = self.calls is None and not self.echoes and not body.scores_tokens
        return body.stream and not self.sampler.goes_back and is_text


def read_request(
    kind: Kind, content: object, model: TextModel, verifiers: VerifierCache, serving: Serving, context: int
) -> CompletionRequest:
    """Validate the JSON body of a request and prepare it for the worker.

    Args:
        kind: "completion" or "chat".
        content: Parsed JSON value.
        model: Model of the server.
        verifiers: Cache of verifiers, which also holds the named verifiers of the server.
        serving: Name of the model and limits of requests.
        context: Maximum length of a sequence in tokens.

    Returns:
        The request with encoded prompts and its sampler.

    Raises:
        InputError: If a field is invalid or not supported.
        RequestError: If the model is unknown or the prompt does not fit into the context.
    """
    body = read_body(kind, content)
    if body.model not in (None, serving.model_name):
        message = f"model={body.model!r}: use {serving.model_name!r}, the model of this server"
        raise RequestError(404, message, "model", "model_not_found")
    requested_verifiers, calls = read_response_format(body.response_format), None
    if isinstance(body, ChatBody):
        field, tools = "messages", read_tools(body.tools, body.tool_choice, body.parallel_tool_calls)
        requested_verifiers, calls = tools.constraint(requested_verifiers), tools.calls
        prompts = [encode_messages(model.tokenization, body, tools.template)]
    else:
        field, prompts = "prompt", encode_prompts(body.prompt, model.tokenization)
    requested_verifiers += [] if body.rule is None else verifiers.read_rule(body.rule)
    requested_verifiers += read_structured_outputs(body)
    if not all(prompts):
        if model.empty_prompt is None:
            hint = "use a text: the prompt is empty and the model has no BOS token"
            raise InputError(field, "", hint)
        prompts = [prompt or list(model.empty_prompt) for prompt in prompts]
    name, sampler = _read_sampler(body.sampler, bool(requested_verifiers))
    sampling = body.sampling(name)
    sampling.require_choice(sampler)
    longest = _max_new_tokens(body, max(map(len, prompts)), field, serving, context)
    steps = serving.max_steps if body.max_steps is None else body.max_steps
    is_seeded = "seed" in body.model_fields_set
    shares_tables = isinstance(sampler, AdaptiveRejection) and not is_seeded and serving.table_prefixes > 0
    has_constraint = bool(requested_verifiers)
    stop_tokens = read_stop_tokens(body, model, has_constraint)
    request = CompletionRequest(
        body,
        prompts,
        sampler,
        sampling,
        tuple(requested_verifiers),
        calls,
        longest,
        steps,
        stop_tokens,
        read_penalties(body, model, stop_tokens, has_constraint),
        shares_tables,
    )
    if isinstance(body, CompletionBody) and body.best_of not in (None, body.n):
        raise InputError("best_of", body.best_of, 'leave it out, or use the sampler {"name": "best-of-n"}')
    if request.choices > serving.samples:
        hint = f"use at most {serving.samples} samples per request (number of prompts times n)"
        raise InputError("n", body.n, hint)
    if steps > serving.max_steps:
        raise InputError("max_steps", steps, f"use at most {serving.max_steps}")
    if not longest and requested_verifiers:
        raise InputError("max_tokens", 0, "use at least 1: a constraint applies to new tokens")
    json_kinds = [one.kind for one in requested_verifiers if KINDS[one.kind].is_json]
    if body.confidence and (len(json_kinds) != 1 or "tools" in json_kinds):
        hint = "use it with one JSON schema, such as response_format, and without tools"
        raise InputError("confidence", True, hint)
    if body.stream_options is not None and not body.stream:
        raise InputError("stream_options", {}, "leave it out or use stream: it applies only to streams")
    return request


def _read_sampler(value: object, has_verifier: bool) -> tuple[str, Sampler[Any]]:
    """Return the name of the sampler and the sampler. The default is masked decoding if there is a verifier."""
    if value is None:
        value = "masked-decoding" if has_verifier else "ancestral"
    options = {"name": value} if isinstance(value, str) else value
    if not isinstance(options, dict) or options.get("name") not in SAMPLERS:
        names = ", ".join(SAMPLERS)
        raise InputError("sampler", value, f'use a name, or {{"name": NAME}} with options: {names}')
    name, kind = options["name"], SAMPLERS[options["name"]]
    known: list[str] = (
        [one.name for one in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    )
    chosen = {key: option for key, option in options.items() if key != "name"}
    for key in chosen:
        if key not in known:
            raise InputError(
                f"sampler.{key}", chosen[key], f"use an option of {name}: {', '.join(known) or 'it has none'}"
            )
    try:
        sampler = kind(**{key: tuple(one) if isinstance(one, list) else one for key, one in chosen.items()})
        hash(sampler)
    except InputError as error:
        raise InputError(f"sampler.{error.field}", error.value, error.hint) from None
    except TypeError:
        raise InputError(
            "sampler", value, "use numbers, strings, booleans or lists of these as options"
        ) from None
    if not sampler.keeps_prompts:
        raise InputError("sampler", value, "use a sampler that keeps the prompt: this one may erase it")
    if sampler.needs_verifier and not has_verifier:
        raise InputError(
            "sampler", value, "add a rule, a response_format or tools: this sampler needs a verifier"
        )
    return name, sampler


def encode_messages(tokenization: Tokenization, body: ChatBody, tools: list[Any] | None) -> list[int]:
    """Return the token ids of the messages of a chat.

    Args:
        tokenization: Tokenization of the model.
        body: Fields of the request.
        tools: Tool definitions for the chat template, or None.

    Raises:
        InputError: If a message is invalid.
    """
    messages, options = body.messages, body.chat_template_kwargs
    require_text("messages", json.dumps([messages, tools], ensure_ascii=False))
    require_text("chat_template_kwargs", json.dumps(options, ensure_ascii=False))
    if isinstance(messages, str):
        raise InputError("messages", messages, 'use a list of objects with "role" and "content"')
    try:
        return tokenization.chat(messages, tools=tools, template_options=options)
    except InputError as error:
        field = error.field if error.field.startswith("messages") else "messages"
        if error.field == "template_options":
            field = "chat_template_kwargs"
        raise InputError(field, error.value, error.hint) from error


def encode_prompts(
    value: str | Sequence[Any], tokenization: Tokenization, field: str = "prompt"
) -> list[list[int]]:
    """Return the token ids of one or several texts.

    Args:
        value: A text, token ids, or a list of texts or of token ids.
        tokenization: Tokenization of the model.
        field: Name of the field in error messages (default: "prompt").

    Raises:
        InputError: If a text cannot be encoded, or an id does not belong to the vocabulary.
    """
    several = [value] if isinstance(value, str) or isinstance(value[0], int) else value
    for text in several:
        if isinstance(text, str):
            require_text(field, text)
    prompts = [tokenization.encode(one) if isinstance(one, str) else list(one) for one in several]
    for token in (token for prompt in prompts for token in prompt):
        if not 0 <= token < tokenization.vocab_size:
            hint = f"use token ids from 0 to {tokenization.vocab_size - 1}"
            raise InputError(field, token, hint)
    return prompts


def _max_new_tokens(
    body: CompletionBody | ChatBody, prompt: int, field: str, serving: Serving, context: int
) -> int:
    """Return the maximum number of new tokens for prompts of up to `prompt` tokens."""
    scores_only = isinstance(body, CompletionBody) and body.max_tokens == 0
    if prompt >= context + scores_only:
        message = f"{field}: it has {prompt} tokens and the context {context}: use a shorter prompt"
        raise RequestError(400, message, field, "context_length_exceeded")
    most = min(context - prompt, serving.max_new_tokens or context)
    value, default = body.max_tokens, _DEFAULT_MAX_TOKENS
    if isinstance(body, ChatBody):
        default, other = most, body.max_completion_tokens
        if other is not None and value not in (None, other):
            hint = "leave out max_tokens or max_completion_tokens: their values differ"
            raise InputError("max_tokens", value, hint)
        value = value if other is None else other
    return min(default if value is None else value, most)
