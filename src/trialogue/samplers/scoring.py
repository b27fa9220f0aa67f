"""Log-probabilities of given texts under a model."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive, as_oracle
from trialogue.oracles.prefix_features import prefix_features
from trialogue.samplers.prefix.prompts import (
    Prompts,
    encode_prompts,
    prompt_tensors,
    replace_empty_prompts,
    require_known_tokens,
)
from trialogue.validation import Count, validated

_NUMBERS_AT_ONCE = 1 << 24


class Scores(NamedTuple):
    """Log-probabilities of n completions under a model.

    Attributes:
        log_prob: Log-probability (n,) float64 of each completion given its prompt, in nats.
        token_log_probs: For each completion, the log-probability (tokens,) float64 of each of its tokens given the
            prompt and the tokens before it.
        tokens: For each completion, its token ids.
    """

    log_prob: Tensor
    token_log_probs: list[Tensor]
    tokens: list[list[int]]


class ScoredTokens(NamedTuple):
    """Log-probabilities of some tokens of several sequences.

    Attributes:
        places: For each of n tokens, the index of its sequence and its index in this sequence.
        log_probs: Log-probability (n,) float64 of each token given the tokens before it.
        top: Most probable tokens instead of each token, in descending order, as ids (n, k) int64.
        top_log_probs: Their log-probabilities (n, k) float64.
        positions: Number of positions that are completed by this part.
    """

    places: list[tuple[int, int]]
    log_probs: Tensor
    top: Tensor
    top_log_probs: Tensor
    positions: int


def score_tokens(
    oracle: Autoregressive,
    sequences: Sequence[Sequence[int]],
    starts: Sequence[int],
    *,
    num_top: int = 0,
    batch_size: int = 16,
) -> Iterator[ScoredTokens]:
    """Compute the log-probabilities of the tokens of sequences, in parts. Each position is evaluated once.

    Advance the iterator in `torch.inference_mode()`.

    Args:
        oracle: The model. Its temperature and truncation are ignored.
        sequences: Token ids of each sequence.
        starts: Index of the first token to score of each sequence, at least 1 for models that cannot evaluate an empty
            prefix.
        num_top: Number of most probable tokens to return for each place (default: 0).
        batch_size: Maximum number of sequences per forward pass.

    Yields:
        Parts that together contain each token once, one part per forward pass.
    """
    rows_at_once = max(1, _NUMBERS_AT_ONCE // oracle.vocab_size)
    prefixes = [range(start, len(tokens)) for start, tokens in zip(starts, sequences, strict=True)]
    for part in prefix_features(oracle, sequences, prefixes, batch_size=batch_size):
        places = [(place, prefixes[place][turn]) for place, turn in part.prefixes]
        following = torch.tensor([sequences[place][index] for place, index in places])
        found = list[Tensor]()
        top = list[tuple[Tensor, Tensor]]()
        for features, chosen in zip(
            part.features.split(rows_at_once), following.split(rows_at_once), strict=True
        ):
            log_probs = part.context.distributions(features)[1].cpu()
            found.append(log_probs.gather(1, chosen[:, None])[:, 0])
            top.append(log_probs.topk(min(num_top, log_probs.shape[1]), 1))
        values, indices = (torch.cat(parts) for parts in zip(*top, strict=True))
        yield ScoredTokens(places, torch.cat(found).double(), indices, values.double(), part.positions)


@validated
def score(
    oracle: Autoregressive,
    prompts: Prompts | Sequence[str],
    completions: Prompts | Sequence[str],
    *,
    batch_size: Count = 16,
    progress: Callable[[int], object] | None = None,
) -> Scores:
    """Compute the log-probability of given completions under a model.

    A text can be split into tokens in several ways, and only one of them is scored: if prompt and completion
    are texts, that of their concatenation. Give the token ids of a completion if they are known, for example
    those of samples. An end-of-sequence token is scored only if the token ids contain it.

    Args:
        oracle: The model. Its temperature and truncation (see `truncated`) are ignored.
        prompts: One prompt per completion, as texts or as token ids in any form that `generate` accepts. An
            empty prompt is replaced by the BOS token of the model, if it has one.
        completions: The completions, as texts or as token ids in any form that `generate` accepts for
            prompts.
        batch_size: Maximum number of sequences per forward pass.
        progress: Function called with the number of completed positions after each forward pass (default:
            none).

    Returns:
        Log-probabilities of the completions and of their tokens. An empty completion has log-probability 0.

    Raises:
        InputError: If there is not one prompt per completion. Also if a token does not belong to the
            vocabulary, a sequence is longer than the context of the model, or texts are given for a model
            without a tokenization.

    Example:
        >>> from trialogue import score
        >>> from trialogue.data import Table
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> score(table, [(), (0,)], [(0, 1), (1,)]).log_prob.exp()
        tensor([0.2500, 0.3333], dtype=torch.float64)
    """
    oracle = as_oracle(oracle)
    if len(prompts) != len(completions) and not isinstance(completions, str):
        hint = f"give one completion for each of the {len(prompts)} prompts"
        raise InputError("completions", len(completions), hint)
    tokens, ends = prompt_tensors(cast(Prompts, encode_prompts(oracle, prompts)))
    texts, lengths = prompt_tensors(cast(Prompts, _encode_completions(oracle, prompts, completions)))
    require_known_tokens(tokens, ends, oracle.vocab_size)
    require_known_tokens(texts, lengths, oracle.vocab_size, "completions")
    tokens, ends = replace_empty_prompts(oracle, tokens, ends)
    longest = int((ends + lengths).max()) if len(ends) else 0
    if oracle.max_length is not None and longest > oracle.max_length:
        hint = f"use a prompt and a completion of at most {oracle.max_length} tokens together, the context of the model"
        raise InputError("completions", longest, hint)
    starts = ends.tolist()
    written = [own[:length].tolist() for own, length in zip(texts, lengths.tolist(), strict=True)]
    sequences = [
        [*prompt[:start].tolist(), *completion]
        for prompt, start, completion in zip(tokens, starts, written, strict=True)
    ]
    log_probs = [torch.zeros(len(completion), dtype=torch.float64) for completion in written]
    with torch.inference_mode():
        for part in score_tokens(oracle, sequences, starts, batch_size=batch_size):
            for (place, index), log_prob in zip(part.places, part.log_probs.tolist(), strict=True):
                log_probs[place][index - starts[place]] = log_prob
            if progress is not None:
                progress(part.positions)
    totals = torch.tensor([float(own.sum()) for own in log_probs], dtype=torch.float64)
    return Scores(totals, log_probs, written)


def _encode_completions(
    oracle: Autoregressive, prompts: Prompts | Sequence[str], completions: Prompts | Sequence[str]
) -> Prompts | None:
    """Convert completions that are texts to token ids. Other completions are returned unchanged."""
    tokenization = oracle.tokenization
    encoded = encode_prompts(oracle, completions, "completions")
    if encoded is completions or not isinstance(tokenization, Tokenization):
        return encoded
    texts = zip(cast(Sequence[str], completions), prompts, strict=True)
    return [
        tokenization.encode_completion(text, prompt if isinstance(prompt, str) else "")
        for text, prompt in texts
    ]
