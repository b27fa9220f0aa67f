"""Cross-entropy and accuracy of a model on text corpora, after or during training.

A masked model predicts each token from all other tokens of its row. A causal model predicts each token from
the tokens before it. Logarithms are natural.
"""

import json
import math
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor, nn

from trialogue.arrays import Integers, require_bools
from trialogue.errors import InputError
from trialogue.models.networks.attention_only import AttentionOnly
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.networks.masked_transformer import MaskedTransformer
from trialogue.models.networks.transformer import Transformer
from trialogue.oracles import Autoregressive, Masked
from trialogue.randomness import generator
from trialogue.storage import atomic_write
from trialogue.training.masking import Rate
from trialogue.training.observers import Observer, Update
from trialogue.validation import Natural, validated

_ENTRIES_AT_ONCE = 2**24


class TokenScores(NamedTuple):
    """Loss of a model on each token of a corpus, and whether the token was predicted correctly.

    Attributes:
        losses: Negative log-probability of each token in nats, (rows, N) float64. Undefined where `scored` is False.
        right: Whether the token is the most probable one, (rows, N) bool. Undefined where `scored` is False.
        scored: Whether the token was predicted, (rows, N) bool.
    """

    losses: Tensor
    right: Tensor
    scored: Tensor

    def whole(self) -> "Score":
        """Return the mean loss, its standard error and the accuracy over the scored tokens.

        Raises:
            InputError: If no token was scored.
        """
        counts = self.scored.sum(1).double()
        total = counts.sum().item()
        if not total:
            raise InputError("tokens", tuple(self.scored.shape), "no token can be predicted; use longer rows")
        sums = self.losses.where(self.scored, 0.0).sum(1)
        loss = sums.sum().item() / total
        rows = len(counts)
        # Rows can have different numbers of scored tokens, so the loss is a ratio of two means.
        spread = ((sums - loss * counts).square().sum().item() / (rows - 1)) if rows > 1 else math.nan
        return Score(
            loss,
            math.sqrt(spread * rows) / total,
            (self.right & self.scored).sum().item() / total,
            int(total),
        )


class Score(NamedTuple):
    """Mean loss and accuracy of a model on a corpus.

    Attributes:
        loss: Cross-entropy in nats per token.
        error: Standard error of `loss` over rows. NaN for a single row.
        accuracy: Fraction of tokens that are the most probable one.
        targets: Number of scored tokens.
    """

    loss: float
    error: float
    accuracy: float
    targets: int


@validated
def corpus_score(
    model: nn.Module | Masked | Autoregressive,
    tokens: Annotated[Tensor, Integers("rows N")],
    share: Rate = 1.0,
    seed: Natural = 0,
    scored: Tensor | None = None,
) -> Score:
    """Return the mean loss and accuracy of `model` on `tokens`.

    Args:
        model: A network or an oracle with masked or autoregressive conditionals.
        tokens: Token ids, (rows, N) int64.
        share: Fraction of the tokens of each row that a masked model predicts. Causal models ignore it.
        seed: Seed for the choice of these tokens. The choice is the same in every call.
        scored: Tokens to score, (rows, N) bool. All tokens by default.

    Returns:
        The mean over the scored tokens. `token_scores` lists tokens that are never scored.

    Raises:
        InputError: If the model or the tokens cannot be used, or if no token is scored.
    """
    masked = _as_masked(model)
    if share == 1 or masked is None:
        return token_scores(model, tokens, scored).whole()
    free = _predictable_sites(masked, tokens)
    return token_scores(
        masked, tokens, _sample_sites(free if scored is None else free & scored.cpu(), share, seed)
    ).whole()


@validated
def token_scores(
    model: nn.Module | Masked | Autoregressive,
    tokens: Annotated[Tensor, Integers("rows N")],
    scored: Tensor | None = None,
) -> TokenScores:
    """Return the loss and the correctness of each token under a model.

    Tokens that the model cannot predict are not scored: special tokens around the text of a masked model, the
    first token of a row for a causal model, and the first `context` tokens for an `AttentionOnly` network.

    Args:
        model: A network or an oracle with masked or autoregressive conditionals.
        tokens: Token ids, (rows, N) int64.
        scored: Tokens to score, (rows, N) bool. All tokens by default.

    Raises:
        InputError: If the model has neither kind of conditionals. Also if a token is outside its vocabulary,
            or if the rows are too short for a causal model.
    """
    if scored is not None:
        require_bools("scored", scored, tuple(tokens.shape), "give one bool for each token")
        scored = scored.cpu()
    masked = _as_masked(model)
    if masked is not None:
        _require_vocabulary(tokens, masked.vocab_size)
        return _masked_scores(masked, tokens, scored)
    if isinstance(model, Transformer):
        _require_vocabulary(tokens, model.config.vocab_size)
        return next_token_scores(_transformer_logits(model), model.vocab_size, tokens, scored)
    if isinstance(model, Autoregressive):
        _require_vocabulary(tokens, model.vocab_size)
        first = model.config.context if isinstance(model, AttentionOnly) else 1
        return next_token_scores(_oracle_log_probs(model, first), model.vocab_size, tokens, scored, first)
    hint = "use a masked or an autoregressive model"
    raise InputError("model", type(model).__name__, hint)


def next_token_scores(
    logits: Callable[[Tensor], Tensor],
    vocab_size: int,
    tokens: Tensor,
    scored: Tensor | None = None,
    first: int = 1,
) -> TokenScores:
    """Return the loss and correctness of each token under a causal model, given its logits.

    Args:
        logits: Function that maps tokens (n, N) to the logits (n, N - first, vocab_size) of all but the first tokens.
        vocab_size: Number of tokens of the model.
        tokens: Token ids, (rows, N) int64.
        scored: Tokens to score, (rows, N) bool. All tokens by default.
        first: Number of tokens at the start of each row that are not predicted.

    Raises:
        InputError: If the rows have no more than `first` tokens.
    """
    rows, length = tokens.shape
    if length <= first:
        skipped = "the first token" if first == 1 else f"the first {first} tokens"
        raise InputError(
            "tokens", (rows, length), f"the model does not predict {skipped} of a row; use longer rows"
        )
    scored = torch.ones(rows, length, dtype=torch.bool) if scored is None else scored.clone()
    scored[:, :first] = False
    losses, right = (
        torch.zeros(rows, length, dtype=torch.float64),
        torch.zeros(rows, length, dtype=torch.bool),
    )
    with torch.no_grad():
        for part in torch.arange(rows).split(max(1, _ENTRIES_AT_ONCE // (length * vocab_size))):
            losses[part, first:], right[part, first:] = _losses_and_hits(
                logits(tokens[part]), tokens[part, first:]
            )
    return TokenScores(losses, right, scored)


class CorpusLosses(Observer):
    """Observer that measures the loss on several corpora during training.

    A resumed training continues the file at `path`. A step that is repeated replaces its old rows.

    Args:
        corpora: Token ids of each corpus, (rows, N) int64, by name.
        schedule: Steps after which to measure.
        path: File for the results, with one JSON object per line. No file by default.
        share: Fraction of the tokens of each row that a masked model predicts.
        seed: Seed for the choice of these tokens.

    Attributes:
        rows: One dict per step and corpus, with the keys `step` and `corpus` and the fields of `Score`.
    """

    @validated
    def __init__(
        self,
        corpora: Mapping[str, Tensor],
        schedule: Container[int],
        *,
        path: str | PathLike[str] | None = None,
        share: Rate = 1.0,
        seed: Natural = 0,
    ) -> None:
        self.corpora = {name: Integers("rows N").checked(tokens) for name, tokens in corpora.items()}
        self.schedule, self._share, self._seed = schedule, share, seed
        self._path = None if path is None else Path(path)
        self.rows: list[dict[str, Any]] = [] if self._path is None else _read_rows(self._path)

    def updated(self, update: Update) -> None:
        """Measure the loss on each corpus and write the results.

        Raises:
            InputError: If a corpus cannot be scored, or if the file cannot be written.
        """
        self.rows = [row for row in self.rows if row["step"] < update.step]
        for name, tokens in self.corpora.items():
            score = corpus_score(update.model, tokens, self._share, self._seed)
            self.rows.append({"step": update.step, "corpus": name, **score._asdict()})
        if self._path is not None:
            atomic_write(self._path, "".join(f"{json.dumps(row)}\n" for row in self.rows))


def _read_rows(path: Path) -> list[dict[str, Any]]:
    with suppress(FileNotFoundError):
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except ValueError as error:
            raise InputError(
                "path", str(path), "the file is not a list of corpus losses; use another path"
            ) from error
    return []


def _masked_scores(model: Masked, tokens: Tensor, scored: Tensor | None) -> TokenScores:
    every, free = scored is None, _predictable_sites(model, tokens)
    scored = free if scored is None else scored & free
    losses, right = torch.zeros(tokens.shape, dtype=torch.float64), torch.zeros_like(scored)
    with torch.no_grad():
        if every:
            # Models can evaluate all sites of a row faster than each site separately.
            for part in torch.arange(len(tokens)).split(
                max(1, _ENTRIES_AT_ONCE // (tokens.shape[1] * model.vocab_size))
            ):
                losses[part], right[part] = _losses_and_hits(model.site_log_probs(tokens[part]), tokens[part])
        else:
            rows, sites = scored.nonzero().unbind(1)
            for part in torch.arange(len(rows)).split(max(1, _ENTRIES_AT_ONCE // model.vocab_size)):
                row, site = rows[part], sites[part]
                distributions = model.site_log_weights(tokens[row], site.to(tokens.device))
                losses[row, site], right[row, site] = _losses_and_hits(distributions, tokens[row, site])
    return TokenScores(losses, right, scored)


def _predictable_sites(model: Masked, tokens: Tensor) -> Tensor:
    """Return which tokens (rows, N) bool can be predicted. Special tokens around the text are excluded."""
    whole = torch.ones_like(tokens, dtype=torch.bool)
    return (model.free(tokens) if isinstance(model, MaskedNetwork) else whole).cpu()


def _sample_sites(free: Tensor, share: float, seed: int) -> Tensor:
    """Sample a uniform subset of the `free` sites of each row, at least one."""
    drawn = torch.rand(free.shape, generator=generator(seed, "scored sites"), dtype=torch.float64)
    rank = drawn.masked_fill(~free, 2.0).argsort(1).argsort(1)
    counts = (share * free.sum(1)).round().clamp_min(1)
    return free & (rank < counts[:, None])


def _losses_and_hits(logits: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss of each token in nats and whether it has the largest logit."""
    tokens = tokens.to(logits.device)
    wide = torch.promote_types(logits.dtype, torch.float32)
    chosen = logits.log_softmax(-1, dtype=wide).gather(-1, tokens[..., None])[..., 0]
    return -chosen.double().cpu(), (logits.argmax(-1) == tokens).cpu()


def _as_masked(model: object) -> Masked | None:
    """Return an adapter that predicts masked tokens with `model`, or None if the model is causal."""
    if isinstance(model, Transformer):
        return None if model.mask is None else MaskedTransformer(model)
    return model if isinstance(model, Masked) else None


def _transformer_logits(model: Transformer) -> Callable[[Tensor], Tensor]:
    def logits(tokens: Tensor) -> Tensor:
        bos = tokens.new_full((len(tokens), 1), model.bos)
        inputs = torch.cat((bos, tokens[:, :-1]), 1).to(model.head.weight.device)
        found: Tensor = model(inputs)[:, 1:]
        return found

    return logits


def _oracle_log_probs(model: Autoregressive, first: int = 1) -> Callable[[Tensor], Tensor]:
    def distributions(tokens: Tensor) -> Tensor:
        tokens, rows = tokens.cpu(), len(tokens)
        context, every = model.open(rows, tokens.shape[1]), torch.arange(rows)
        found, start = [], torch.full((rows,), context.first)
        for length in range(first, tokens.shape[1]):
            stop = torch.full((rows,), length)
            found.append(context.log_probs(context.features(tokens, start, stop, every)))
            start = stop + 1
        return torch.stack(found, 1)

    return distributions


def _require_vocabulary(tokens: Tensor, vocab_size: int) -> None:
    wrong = tokens[(tokens < 0) | (tokens >= vocab_size)]
    if len(wrong):
        raise InputError("tokens", int(wrong[0]), f"use token ids from 0 to {vocab_size - 1}")
