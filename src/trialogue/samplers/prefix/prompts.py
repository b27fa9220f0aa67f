"""Conversion of prompts and stop conditions to the tensors and functions that the engine needs."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeGuard, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.arrays import integer_tensor
from trialogue.errors import MOST_COUNTED, InputError
from trialogue.oracles import Autoregressive, Tokenizing, pad_sequences
from trialogue.samplers.prefix.batch import SequenceStop, Stop, is_stopped
from trialogue.validation import check, integer_range
from trialogue.verifiers.languages.stop_strings import StopStrings

Prompts = Tensor | tuple[Tensor, Tensor] | Sequence[Sequence[int]]
StopLike = str | Stop | Sequence[str | Stop]
"""Stop strings and functions of the token ids of a completion. The first match ends the completion."""


def encode_prompts(
    oracle: Autoregressive, prompts: Prompts | Sequence[str] | None, field: str = "prompts"
) -> Prompts | None:
    """Convert prompts that are texts to token ids, and return other prompts unchanged.

    Args:
        oracle: The model, whose tokenization is used.
        prompts: Texts, or token ids in any form that `generate` accepts.
        field: Name of the argument in error messages (default: "prompts").

    Returns:
        Prompts as token ids, or None.

    Raises:
        InputError: If the argument is a single text or mixes texts and token ids, or the model has no tokenization.
    """
    if isinstance(prompts, str):
        raise InputError(field, prompts, "give a list of texts, even for a single one")
    if isinstance(prompts, Sequence) and any(isinstance(prompt, str) for prompt in prompts):
        tokenization = _tokenization(oracle, field, "texts")
        texts = [prompt for prompt in prompts if isinstance(prompt, str)]
        if len(texts) < len(prompts):
            raise InputError(field, "texts and token ids", "give either texts or token ids")
        return [tokenization.encode(text) for text in texts]
    return cast("Prompts | None", prompts)


def stop_strings(stop: StopLike | None) -> list[str]:
    """Return the strings in the argument `stop` of `generate`, without the functions."""
    return [part for part in list_stop_conditions(stop) if isinstance(part, str)]


def make_stop_condition(oracle: Autoregressive, stop: StopLike | None) -> Stop | None:
    """Combine the strings and functions in the argument `stop` of `generate` to one stop condition.

    Args:
        oracle: The model, whose tokenization converts completions to text.
        stop: The argument `stop` of `generate`: a string, a function of the completion's token ids, or a list of both.

    Returns:
        A function that returns whether a completion is complete, or None if `stop` is None.

    Raises:
        InputError: If an item is neither a string nor a function, if a string is empty, or if the model has no
            tokenization.
    """
    if stop is None or isinstance(stop, SequenceStop) or callable(stop):
        return stop
    texts, functions = (
        stop_strings(stop),
        [part for part in list_stop_conditions(stop) if not isinstance(part, str)],
    )
    wrong = [part for part in functions if not (isinstance(part, SequenceStop) or callable(part))]
    if wrong:
        raise InputError("stop", wrong[0], "give strings, or functions of a completion's token ids")
    if texts or not functions:
        tokenization, strings = _tokenization(oracle, "stop", "strings"), StopStrings(texts)
        functions.insert(0, lambda completion: strings.find(tokenization.bytes(completion)) is not None)
    if len(functions) == 1:
        return functions[0]
    return SequenceStop(lambda sequence, start: any(is_stopped(one, sequence, start) for one in functions))


def list_stop_conditions(stop: StopLike | None) -> list[str | Stop]:
    """Return the strings and functions in the argument `stop` of `generate` as a list."""
    if stop is None:
        return []
    if isinstance(stop, str | SequenceStop) or callable(stop):
        return [stop]
    if not isinstance(stop, Iterable):
        raise InputError("stop", stop, "give strings, or functions of a completion's token ids")
    return list(stop)


def make_decoder(
    oracle: Autoregressive, stop: StopLike | None, *, final: bool = True
) -> Callable[[Sequence[int]], str] | None:
    """Return a function that converts the token ids of a completion to the text before the first stop string.

    Args:
        oracle: The model.
        stop: The argument `stop` of `generate`.
        final: Whether completions are finished (default: True). If False, the function drops an end that later tokens
            may turn into another character or a stop string.

    Returns:
        The function, or None if the model has no tokenization.
    """
    tokenization = oracle.tokenization
    if tokenization is None:
        return None
    texts = stop_strings(stop)
    strings = StopStrings(texts) if texts else None

    def decode(completion: Sequence[int]) -> str:
        if strings is None or not final:
            text = tokenization.text(completion, final)
            return text if strings is None else strings.before(text, final)
        content = tokenization.bytes(completion)
        return content[: strings.find(content)].decode(errors="replace")

    return decode


def _tokenization(oracle: Autoregressive, field: str, value: str) -> Tokenizing:
    if oracle.tokenization is None:
        raise InputError(field, value, "the model has no tokenization; give token ids")
    return oracle.tokenization


def maximum_lengths(oracle: Autoregressive, lengths: Tensor, max_new_tokens: int | None) -> Tensor:
    """Return the maximum length of each sequence, given by `max_new_tokens` and the model's `max_length`.

    Args:
        oracle: The model.
        lengths: Lengths (n,) int64 of the prompts.
        max_new_tokens: Maximum length of a completion (default: up to the model's `max_length`).

    Returns:
        Maximum lengths (n,) int64 of prompt and completion.

    Raises:
        InputError: If a prompt is too long, or neither the model nor `max_new_tokens` defines a maximum.
    """
    if max_new_tokens is None:
        if oracle.max_length is None:
            raise InputError("max_new_tokens", None, "give a number, because the model has no maximum length")
        limit = torch.full_like(lengths, oracle.max_length)
    else:
        limit = lengths + check("max_new_tokens", max_new_tokens, integer_range(1, MOST_COUNTED))
        if oracle.max_length is not None:
            limit = limit.clamp_max(oracle.max_length)
    if bool((lengths > limit).any()):
        longest = int(lengths.max())
        raise InputError("prompts", longest, f"use prompts of at most {oracle.max_length} tokens")
    return limit


def prompt_tensors(prompts: Prompts | None) -> tuple[Tensor, Tensor]:
    """Convert prompts to a padded tensor of token ids.

    Args:
        prompts: A list of sequences, a tensor (n, width), or right-padded tokens with their lengths (default: one empty
            prompt).

    Returns:
        Tokens (n, width) int64 and lengths (n,) int64.

    Raises:
        InputError: If the prompts are not integers of such a shape.
    """
    if prompts is None:
        prompts = [()]
    if isinstance(prompts, Tensor):
        tokens = integer_tensor("prompts", prompts, "give integer token ids of shape (n, width)")
        if tokens.ndim != 2:
            raise InputError("prompts", tuple(tokens.shape), "give integer token ids of shape (n, width)")
        return tokens, torch.full((len(tokens),), tokens.shape[1])
    if isinstance(prompts, tuple) and len(prompts) == 2 and isinstance(prompts[0], Tensor):
        hint = "give integer tokens (n, width) and lengths (n,) from 0 to width"
        tokens, lengths = (integer_tensor("prompts", part, hint) for part in prompts)
        fits = tokens.ndim == 2 and lengths.shape == tokens.shape[:1]
        if not fits or bool(((lengths < 0) | (lengths > tokens.shape[1])).any()):
            raise InputError("prompts", tuple(tokens.shape), hint)
        return tokens, lengths
    if not isinstance(prompts, Iterable):
        raise InputError("prompts", type(prompts).__name__, "give sequences of integer token ids")
    return pad_sequences(
        [prompt if _holds_integers(prompt) else token_ids("prompts", prompt).tolist() for prompt in prompts]
    )


def _holds_integers(prompt: object) -> TypeGuard[Sequence[int]]:
    """Return whether a prompt is a list or tuple of Python integers that fit into int64, and needs no conversion."""
    return (
        isinstance(prompt, (list, tuple))
        and set(map(type, prompt)) <= {int}
        and -(2**63) <= min(prompt, default=0) <= max(prompt, default=0) < 2**63
    )


def replace_empty_prompts(oracle: Autoregressive, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Replace empty prompts by the BOS token of the model.

    Args:
        oracle: Model whose `empty_prompt` replaces empty prompts.
        tokens: Token ids (n, width) of the prompts.
        lengths: Lengths (n,) of the prompts.

    Returns:
        Tokens and lengths of the prompts, in the same order.

    Raises:
        InputError: If a prompt is empty and the model can neither continue it nor has a BOS token.
    """
    begin, empty = oracle.empty_prompt, lengths == 0
    if not bool(empty.any()) or (begin is not None and not len(begin)):
        return tokens, lengths
    if begin is None:
        hint = "the model cannot continue an empty prompt and has no BOS token; give at least one token"
        raise InputError("prompts", [], hint)
    tokens = pad(tokens, (0, max(0, len(begin) - tokens.shape[1]))).clone()
    tokens[empty, : len(begin)] = torch.tensor(list(begin), dtype=torch.int64)
    return tokens, torch.where(empty, len(begin), lengths)


def token_ids(field: str, prompt: Iterable[int]) -> Tensor:
    """Convert one prompt to a tensor of token ids.

    Args:
        field: Name of the argument for error messages.
        prompt: Token ids.

    Returns:
        Token ids (tokens,) int64.

    Raises:
        InputError: If the prompt is not a sequence of integers.
    """
    hint = "give a sequence of integer token ids"
    if isinstance(prompt, str) or not isinstance(prompt, Iterable):
        raise InputError(field, prompt, hint)
    listed = list(prompt)
    # Torch converts an empty sequence to floating point.
    tokens = integer_tensor(field, listed, hint) if listed else torch.zeros(0, dtype=torch.int64)
    if tokens.ndim != 1:
        raise InputError(field, tuple(tokens.shape), hint)
    return tokens


def validate_sample_ids(sample_ids: Sequence[int] | Tensor | None, samples: int) -> Tensor:
    """Validate the argument `sample_ids` of `generate`, the keys of the random streams of the samples.

    Args:
        sample_ids: One key for each sample (default: indices of the samples).
        samples: Number of samples.

    Returns:
        Keys (samples,) int64.

    Raises:
        InputError: If the keys are not different integers of at least 0, one for each sample.
    """
    if sample_ids is None:
        return torch.arange(samples)
    hint = f"give {samples} different integers of at least 0, one per sample"
    ids = integer_tensor("sample_ids", sample_ids, hint)
    if ids.shape != (samples,):
        raise InputError("sample_ids", len(ids) if ids.ndim else 0, hint)
    # Samples with equal ids would be copies of one sample.
    values, counts = ids.unique(return_counts=True)
    wrong = values[(values < 0) | (counts > 1)]
    if len(wrong):
        raise InputError("sample_ids", int(wrong[0]), hint)
    return ids


def require_known_tokens(prompts: Tensor, lengths: Tensor, vocab_size: int, field: str = "prompts") -> None:
    """Raise `InputError` unless all tokens of the prompts belong to the vocabulary.

    Args:
        prompts: Token ids (n, width). Entries beyond the lengths are ignored.
        lengths: Lengths (n,) of the prompts.
        vocab_size: Number of tokens.
        field: Name of the argument in error messages (default: "prompts").
    """
    within = torch.arange(prompts.shape[1]) < lengths[:, None]
    wrong = within & ((prompts < 0) | (prompts >= vocab_size))
    if bool(wrong.any()):
        row, position = wrong.nonzero()[0].tolist()
        raise InputError(
            f"{field}[{row}][{position}]",
            int(prompts[row, position]),
            f"use token ids from 0 to {vocab_size - 1}",
        )
