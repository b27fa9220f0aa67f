"""Exact samples of a chain of windows: messages backwards, then tokens forwards, all sequences at once."""

import torch
from torch import Tensor

from trialogue.data.potts_messages import Messages
from trialogue.randomness import Streams, seed_of


def sample(messages: Messages, windows: int, n: int, seed: int) -> Tensor:
    """Draw `n` independent sequences (n, L) int64 of so many windows; sequence i depends on `seed` and i alone."""
    vocab, window, states = messages.vocab, messages.window, messages.states
    length = windows + window - 1
    tokens = torch.empty(n, length, dtype=torch.int64)
    streams, rows = Streams(seed_of(seed, "potts"), torch.arange(n)), torch.arange(n)
    context = torch.zeros(n, dtype=torch.int64)
    first = messages.backward(windows)[0]
    for site in range(length):
        if site < window - 1:
            law = first.view(vocab ** (site + 1), -1).logsumexp(1).view(-1, vocab)
        else:
            after = messages.backward(length - 1 - site)[0]
            law = (messages.log_weights.view(vocab, states) + after).view(states, vocab)
        token = streams.choose(law[context], rows)
        tokens[:, site] = token
        context = (context * vocab + token) % states if site >= window - 2 else context * vocab + token
    return tokens
