"""A verifier asked about sequences, outside of any run."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Verifier, as_oracle
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.prompts import Prompts, checked_prompts, prompt_tensors
from trialogue.verifiers.function import VerifierLike, as_verifier


def values(
    verifier: VerifierLike,
    oracle: Autoregressive,
    sequences: Prompts,
    *,
    prompt_lengths: Sequence[int] | Tensor | int = 0,
    max_length: int | None = None,
    batch_size: int | None = None,
) -> Tensor:
    """Values (n,) float64 of `sequences` of token ids, as a sampler on `oracle` would be told them.

    `sequences` are a list, a tensor (n, width), or right-padded tokens with their lengths; the first `prompt_lengths`
    of a row (n,) are its prompt. Those that end in the oracle's end of sequence, or have `max_length` tokens (by
    default the oracle's), are judged as complete ones, the others as prefixes. The oracle is asked for hidden states,
    if the verifier reads them; at most `batch_size` sequences (by default as many as the oracle suggests) at once.

    Raises `InputError` for sequences that are too long or outside the vocabulary, prompts longer than they are, and
    answers that are not one finite non-negative number per sequence.
    """
    oracle, judged = as_oracle(oracle), as_verifier(verifier)
    tokens, lengths = prompt_tensors(sequences)
    checked_prompts(tokens, lengths, oracle.vocab_size)
    start = torch.as_tensor(prompt_lengths).expand(lengths.shape)
    if bool(((start < 0) | (start > lengths)).any()):
        hint = "use at least 0, and at most the length of the sequence"
        raise InputError("prompt_lengths", start.tolist(), hint)
    most = oracle.max_length if max_length is None else max_length
    if most is None:
        most = tokens.shape[1] + 1
    elif len(lengths) and int(lengths.max()) > most:
        raise InputError("sequences", int(lengths.max()), f"use sequences of at most {most} tokens")
    rows = max(1, min(len(lengths), oracle.batch_size if batch_size is None else batch_size))
    tokens = tokens[:, : max([1, *lengths.tolist()])]
    batch = Batch(oracle, rows, tokens.shape[1], layers=tuple(judged.layers))
    judge, answers = Judge(judged, batch), [torch.zeros(0, dtype=torch.float64)]
    with torch.inference_mode():
        for places in torch.arange(len(lengths)).split(rows):
            batch.select(places[:0])
            batch.add(tokens[places], lengths[places], start[places], torch.full_like(places, most))
            answers.append(judge.values(torch.arange(len(places))))
    return torch.cat(answers)


def first_tokens(
    verifiers: Sequence[Verifier], oracle: Autoregressive, prompt: Sequence[int], max_new_tokens: int
) -> Tensor | None:
    """The tokens (vocab,) bool with which all of `verifiers` let a completion of `prompt` (token ids) begin.

    The completion has at most `max_new_tokens`. None where fewer than two of the verifiers know all continuations at
    once: alone each has seen to it that it allows something.
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
        answers = [verifier.children(batch, torch.tensor([0])) for verifier in verifiers]
    known = [answer[0] > 0 for answer in answers if answer is not None]
    return torch.stack(known).all(0) if len(known) > 1 else None
