"""Functions that evaluate a verifier on given sequences."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Verifier, as_oracle
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.prompts import Prompts, prompt_tensors, require_known_tokens
from trialogue.verifiers.functions.function import VerifierLike, as_verifier


def values(
    verifier: VerifierLike,
    oracle: Autoregressive,
    sequences: Prompts,
    *,
    prompt_lengths: Sequence[int] | Tensor | int = 0,
    max_length: int | None = None,
    batch_size: int | None = None,
) -> Tensor:
    """Evaluate a verifier on sequences of token ids.

    Sequences that end with the end-of-sequence token, or have the maximum length, are evaluated as complete sequences,
    and others as prefixes.

    Args:
        verifier: The verifier.
        oracle: The model, which provides hidden states if the verifier needs them.
        sequences: A list of sequences, a tensor (n, width), or right-padded tokens with their lengths.
        prompt_lengths: Length of the prompt, one number or (n,) int64.
        max_length: Maximum length of a sequence in tokens (default: the model's `max_length`).
        batch_size: Number of sequences evaluated at once (default: the model's `batch_size`).

    Returns:
        Values (n,) float64.

    Raises:
        InputError: If a sequence is too long or has a token outside of the vocabulary. Also if a prompt is longer than
            its sequence, or the verifier does not return one finite non-negative number per sequence.
    """
    return _evaluate_sequences(
        verifier,
        oracle,
        sequences,
        prompt_lengths,
        max_length,
        batch_size,
        lambda verifier, rows: (
            verifier.log_values(rows).exp() if verifier.has_targets else verifier.values(rows)
        ),
    )


def log_values(
    verifier: VerifierLike,
    oracle: Autoregressive,
    sequences: Prompts,
    *,
    prompt_lengths: Sequence[int] | Tensor | int = 0,
    max_length: int | None = None,
    batch_size: int | None = None,
) -> Tensor:
    """Evaluate the logarithms of a verifier's values on sequences of token ids, as `values`.

    Args:
        verifier: The verifier. If a factor is a `Target`, its values may be too small for a float.
        oracle: The model.
        sequences: A list of sequences, a tensor (n, width), or right-padded tokens with their lengths.
        prompt_lengths: Length of the prompt, one number or (n,) int64.
        max_length: Maximum length of a sequence in tokens (default: the model's `max_length`).
        batch_size: Number of sequences evaluated at once (default: the model's `batch_size`).

    Returns:
        Logarithms (n,) float64, -inf for the value zero.

    Raises:
        InputError: If `values` would raise it.
    """
    return _evaluate_sequences(
        verifier, oracle, sequences, prompt_lengths, max_length, batch_size, CachedVerifier.log_values
    )


def _evaluate_sequences(
    verifier: VerifierLike,
    oracle: Autoregressive,
    sequences: Prompts,
    prompt_lengths: Sequence[int] | Tensor | int,
    max_length: int | None,
    batch_size: int | None,
    evaluate: Callable[[CachedVerifier, Tensor], Tensor],
) -> Tensor:
    """Call `evaluate` with a batch that holds the sequences, and return its results (n,) float64."""
    oracle, judged = as_oracle(oracle), as_verifier(verifier)
    tokens, lengths = prompt_tensors(sequences)
    require_known_tokens(tokens, lengths, oracle.vocab_size)
    start = torch.as_tensor(prompt_lengths).expand(lengths.shape)
    if bool(((start < 0) | (start > lengths)).any()):
        hint = "use at least 0 and at most the length of the sequence"
        raise InputError("prompt_lengths", start.tolist(), hint)
    most = oracle.max_length if max_length is None else max_length
    if most is None:
        most = tokens.shape[1] + 1
    elif len(lengths) and int(lengths.max()) > most:
        raise InputError("sequences", int(lengths.max()), f"use sequences of at most {most} tokens")
    rows = max(1, min(len(lengths), oracle.batch_size if batch_size is None else batch_size))
    width = max([1, *lengths.tolist()])
    tokens = pad(tokens, (0, max(0, width - tokens.shape[1])))[:, :width]
    batch = Batch(oracle, rows, tokens.shape[1], layers=tuple(judged.layers))
    evaluator, results = CachedVerifier(judged, batch), [torch.zeros(0, dtype=torch.float64)]
    with torch.inference_mode():
        for places in torch.arange(len(lengths)).split(rows):
            batch.select(places[:0])
            batch.add(tokens[places], lengths[places], start[places], torch.full_like(places, most))
            results.append(evaluate(evaluator, torch.arange(len(places))))
    return torch.cat(results)


def first_tokens(
    verifiers: Sequence[Verifier], oracle: Autoregressive, prompt: Sequence[int], max_new_tokens: int
) -> Tensor | None:
    """Return the tokens with which a completion can begin that all verifiers accept.

    Args:
        verifiers: The verifiers.
        oracle: The model.
        prompt: Token ids of the prompt.
        max_new_tokens: Maximum length of the completion in tokens.

    Returns:
        Whether each token is possible, (vocab,) bool. None if fewer than two verifiers have masks, because a
        single verifier is known to accept some text.
    """
    tokens = torch.tensor([list(prompt)], dtype=torch.int64)
    length = torch.tensor([tokens.shape[1]])
    limit = length + max_new_tokens
    if oracle.max_length is not None:
        limit = limit.clamp_max(oracle.max_length)
    batch = Batch(oracle, 1, max(1, tokens.shape[1]))
    with torch.inference_mode():
        batch.select(length[:0])
        batch.add(tokens, length, length, limit)
        results = [verifier.children(batch, torch.tensor([0])) for verifier in verifiers]
    known = [answer[0] > 0 for answer in results if answer is not None]
    return torch.stack(known).all(0) if len(known) > 1 else None
