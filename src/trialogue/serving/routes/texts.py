"""Routes for given texts: /tokenize, /detokenize, /tokenizer_info and /v1/embeddings."""

import base64
from typing import Annotated, Any, Literal

import torch
from annotated_types import MinLen
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.hub.opening import TextModel
from trialogue.oracles.prefix_features import prefix_features
from trialogue.serving.body import ChatBody
from trialogue.serving.evaluations import Parts
from trialogue.serving.requests import encode_messages, encode_prompts
from trialogue.serving.scoring import rows_at_once


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    model: Any = None


class _TokenizeBody(_Strict):
    prompt: str
    add_special_tokens: bool = True
    return_token_strs: bool | None = None


class _TokenizeChatBody(_Strict):
    messages: Any
    tools: Any = None
    chat_template_kwargs: dict[str, Any] = {}
    return_token_strs: bool | None = None
    add_generation_prompt: Literal[True] = True
    add_special_tokens: Literal[False] = False


class _DetokenizeBody(_Strict):
    tokens: list[int]


class _EmbeddingsBody(_Strict):
    input: str | Annotated[list[str] | list[int] | list[list[int]], MinLen(1)]
    encoding_format: Literal["float", "base64"] = "float"
    user: Any = None


def _read(kind: type[Any], body: object) -> Any:
    if not isinstance(body, dict):
        raise InputError("body", body, "send a JSON object")
    try:
        return kind.model_validate({name: value for name, value in body.items() if value is not None})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = str(fault["loc"][0])
        raise InputError(field, body.get(field), fault["msg"].removeprefix("Input ")) from None


def tokenize(body: object, model: TextModel, context: int) -> dict[str, Any]:
    """Return the token ids of a text or of a conversation, in the format of vLLM.

    Args:
        body: Parsed JSON value.
        model: Model of the server.
        context: Maximum length of a sequence in tokens.

    Raises:
        InputError: If a field is invalid.
    """
    tokenization = model.tokenization
    if isinstance(body, dict) and "messages" in body:
        given = _read(_TokenizeChatBody, body)
        chat = ChatBody(messages=given.messages, chat_template_kwargs=given.chat_template_kwargs)
        tokens = encode_messages(tokenization, chat, given.tools)
    else:
        given = _read(_TokenizeBody, body)
        special = given.add_special_tokens
        text = given.prompt
        tokens = tokenization.encode(text) if special and text else tokenization.encode_completion(text)
    strings = tokenization.tokenizer.convert_ids_to_tokens(tokens) if given.return_token_strs else None
    return {"count": len(tokens), "max_model_len": context, "tokens": tokens, "token_strs": strings}


def detokenize(body: object, model: TextModel) -> dict[str, Any]:
    """Return the text of token ids, in the format of vLLM.

    Args:
        body: Parsed JSON value.
        model: Model of the server.

    Raises:
        InputError: If a field is invalid.
    """
    [tokens] = encode_prompts([_read(_DetokenizeBody, body).tokens], model.tokenization, "tokens")
    return {"prompt": model.tokenization.tokenizer.decode(tokens)}


def tokenizer_info(model: TextModel) -> dict[str, Any]:
    """Return the special tokens and the chat template of the model, in the format of vLLM.

    Args:
        model: Model of the server.
    """
    tokenizer = model.tokenization.tokenizer
    names = ("bos_token", "eos_token", "pad_token", "unk_token", "chat_template")
    return {"tokenizer_class": type(tokenizer).__name__} | {name: getattr(tokenizer, name) for name in names}


def read_embeddings(body: object, model: TextModel, context: int, most: int) -> tuple[list[list[int]], bool]:
    """Read the body of a request for embeddings.

    Args:
        body: Parsed JSON value.
        model: Model of the server.
        context: Maximum length of a sequence in tokens.
        most: Maximum number of texts.

    Returns:
        Token ids of each text, and whether vectors are encoded in base64.

    Raises:
        InputError: If a field is invalid.
    """
    given = _read(_EmbeddingsBody, body)
    texts = encode_prompts(given.input, model.tokenization, "input")
    if len(texts) > most:
        raise InputError("input", len(texts), f"use at most {most} texts per request")
    for tokens in texts:
        if not 0 < len(tokens) <= context:
            raise InputError("input", len(tokens), f"use texts of 1 to {context} tokens")
    return texts, given.encoding_format == "base64"


def embed(texts: list[list[int]], model: TextModel, rows: int) -> Parts:
    """Compute the embedding of each text: the mean hidden state before the output head, with length 1.

    Args:
        texts: Token ids of each text.
        model: Model of the server.
        rows: Maximum number of sequences per forward pass.

    Yields:
        None after each forward pass.

    Returns:
        One tensor (width,) float32 per text.
    """
    sums: list[Tensor | None] = [None] * len(texts)
    lengths = [range(1, len(tokens) + 1) for tokens in texts]
    for part in prefix_features(model, texts, lengths, (-1,), rows_at_once(texts, rows)):
        states = part.context.hidden(part.features, -1).float().cpu()
        for (place, _), state in zip(part.prefixes, states, strict=True):
            before = sums[place]
            sums[place] = state if before is None else before + state
        yield
    return [torch.nn.functional.normalize(one, dim=0) for one in sums if one is not None]


def embeddings_response(
    vectors: list[Tensor], texts: list[list[int]], name: str, as_base64: bool
) -> dict[str, Any]:
    """Return the body of the response to a request for embeddings.

    Args:
        vectors: Embeddings (width,) float32.
        texts: Token ids of each text.
        name: Name of the model.
        as_base64: Encode the bytes of each vector in base64.
    """
    encoded: list[Any] = [
        base64.b64encode(vector.numpy().tobytes()).decode() if as_base64 else vector.tolist()
        for vector in vectors
    ]
    tokens = sum(map(len, texts))
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": one} for index, one in enumerate(encoded)
        ],
        "model": name,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
