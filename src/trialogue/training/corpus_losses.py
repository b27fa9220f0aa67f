"""Losses of a model on corpora: of every token by itself, of a whole corpus, and of several through a training.

A masked model is asked for each token given all others of its row, in a copy of its own; a causal one for each but the
first of a row given those before it, whose numbers are thus the same whether it reads a token before the first or not;
one that reads no less than S tokens, for each but the first S. Rows may lie on another device than a network.
Logarithms are natural.
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
    """What a model makes of each token, all (rows, N): what it costs, whether it is the likeliest, and if it was asked.

    `losses` float64 in nats and `right` bool mean nothing where `asked` is False.
    """

    losses: Tensor
    right: Tensor
    asked: Tensor

    def whole(self) -> "Score":
        """What they come to; raises `InputError` where no token was asked about."""
        counts = self.asked.sum(1).double()
        total = counts.sum().item()
        if not total:
            raise InputError("tokens", tuple(self.asked.shape), "no token of theirs can be predicted")
        sums = self.losses.where(self.asked, 0.0).sum(1)
        loss = sums.sum().item() / total
        rows = len(counts)
        # Rows differ in how many of their tokens count: the ratio of two means.
        spread = ((sums - loss * counts).square().sum().item() / (rows - 1)) if rows > 1 else math.nan
        return Score(
            loss, math.sqrt(spread * rows) / total, (self.right & self.asked).sum().item() / total, int(total)
        )


class Score(NamedTuple):
    """Loss in nats per token with its standard error over rows (NaN of one), accuracy, and how many tokens count."""

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
    asked: Tensor | None = None,
) -> Score:
    """What `model` makes of `tokens` (rows, N), all or those that are `asked` about: see `token_scores`.

    A masked model is asked about a `share` of these sites of each row, drawn by `seed`, the same ones every time.
    """
    masked = _masked(model)
    if share == 1 or masked is None:
        return token_scores(model, tokens, asked).whole()
    free = _free(masked, tokens)
    return token_scores(
        masked, tokens, _sites(free if asked is None else free & asked.cpu(), share, seed)
    ).whole()


@validated
def token_scores(
    model: nn.Module | Masked | Autoregressive,
    tokens: Annotated[Tensor, Integers("rows N")],
    asked: Tensor | None = None,
) -> TokenScores:
    """What `model`, a network or an oracle, makes of the `tokens` (rows, N) that are `asked` about (bool), or of all.

    A masked model is not asked about what frames its text, nor a causal one about the first token of a row, or about
    those before which there are fewer tokens than an `AttentionOnly` reads. Raises `InputError` for what is neither,
    for tokens that it does not know, and for rows in which a causal model is asked about none.
    """
    if asked is not None:
        require_bools("asked", asked, tuple(tokens.shape), "give one bool for each token")
        asked = asked.cpu()
    masked = _masked(model)
    if masked is not None:
        _require_known(tokens, masked.vocab_size)
        return _of_masked(masked, tokens, asked)
    if isinstance(model, Transformer):
        _require_known(tokens, model.config.vocab_size)
        return next_token_scores(_next_logits(model), model.vocab_size, tokens, asked)
    if isinstance(model, Autoregressive):
        _require_known(tokens, model.vocab_size)
        first = model.config.context if isinstance(model, AttentionOnly) else 1
        return next_token_scores(_answers(model, first), model.vocab_size, tokens, asked, first)
    hint = "give a masked or an autoregressive model: it has neither kind of conditionals"
    raise InputError("model", type(model).__name__, hint)


def next_token_scores(
    logits: Callable[[Tensor], Tensor],
    vocab_size: int,
    tokens: Tensor,
    asked: Tensor | None = None,
    first: int = 1,
) -> TokenScores:
    """`token_scores` of a causal model that predicts all tokens of a row but its `first` ones.

    Its `logits` map rows (n, N) to those (n, N - first, vocab) of the others. Raises `InputError` for shorter rows.
    """
    rows, length = tokens.shape
    if length <= first:
        but = "the first" if first == 1 else f"the first {first}"
        raise InputError("tokens", (rows, length), f"the model predicts all but {but}: use longer rows")
    asked = torch.ones(rows, length, dtype=torch.bool) if asked is None else asked.clone()
    asked[:, :first] = False
    losses, right = (
        torch.zeros(rows, length, dtype=torch.float64),
        torch.zeros(rows, length, dtype=torch.bool),
    )
    with torch.no_grad():
        for part in torch.arange(rows).split(max(1, _ENTRIES_AT_ONCE // (length * vocab_size))):
            losses[part, first:], right[part, first:] = _judged(logits(tokens[part]), tokens[part, first:])
    return TokenScores(losses, right, asked)


class CorpusLosses(Observer):
    """Losses through a training on `corpora`, tokens (rows, N) by name, after the steps in `schedule`.

    `rows` has for each step and corpus a mapping of `step`, `corpus`, and the fields of `Score`; `share` and `seed` are
    those of `corpus_score`. They are kept in the file `path`, if it is given, one JSON object a line: a training that
    was killed goes on in it, and steps that are told of once more replace theirs.
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
        self.rows: list[dict[str, Any]] = [] if self._path is None else _read(self._path)

    def updated(self, update: Update) -> None:
        """Measure the losses; raises `InputError` as `corpus_score` does, and where they cannot be written."""
        self.rows = [row for row in self.rows if row["step"] < update.step]
        for name, tokens in self.corpora.items():
            score = corpus_score(update.model, tokens, self._share, self._seed)
            self.rows.append({"step": update.step, "corpus": name, **score._asdict()})
        if self._path is not None:
            atomic_write(self._path, "".join(f"{json.dumps(row)}\n" for row in self.rows))


def _read(path: Path) -> list[dict[str, Any]]:
    with suppress(FileNotFoundError):
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except ValueError as error:
            raise InputError(
                "path", str(path), "it holds no losses of a training: give another file"
            ) from error
    return []


def _of_masked(model: Masked, tokens: Tensor, asked: Tensor | None) -> TokenScores:
    every, free = asked is None, _free(model, tokens)
    asked = free if asked is None else asked & free
    losses, right = torch.zeros(tokens.shape, dtype=torch.float64), torch.zeros_like(asked)
    with torch.no_grad():
        if every:  # a model may answer for all sites of a row for less than for each by itself
            for part in torch.arange(len(tokens)).split(
                max(1, _ENTRIES_AT_ONCE // (tokens.shape[1] * model.vocab_size))
            ):
                losses[part], right[part] = _judged(model.site_log_probs(tokens[part]), tokens[part])
        else:
            rows, sites = asked.nonzero().unbind(1)
            for part in torch.arange(len(rows)).split(max(1, _ENTRIES_AT_ONCE // model.vocab_size)):
                row, site = rows[part], sites[part]
                distributions = model.site_log_weights(tokens[row], site.to(tokens.device))
                losses[row, site], right[row, site] = _judged(distributions, tokens[row, site])
    return TokenScores(losses, right, asked)


def _free(model: Masked, tokens: Tensor) -> Tensor:
    """Which of the `tokens` are the text itself, and not its frame."""
    whole = torch.ones_like(tokens, dtype=torch.bool)
    return (model.free(tokens) if isinstance(model, MaskedNetwork) else whole).cpu()


def _sites(free: Tensor, share: float, seed: int) -> Tensor:
    """A `share` of the sites of each row (rows, N) that are `free`, one at least, every such set equally likely."""
    drawn = torch.rand(free.shape, generator=generator(seed, "scored sites"), dtype=torch.float64)
    rank = drawn.masked_fill(~free, 2.0).argsort(1).argsort(1)
    counts = (share * free.sum(1)).round().clamp_min(1)
    return free & (rank < counts[:, None])


def _judged(logits: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """What the `tokens` (...) cost in nats under `logits` (..., vocab), and whether they are the likeliest."""
    tokens = tokens.to(logits.device)
    wide = torch.promote_types(logits.dtype, torch.float32)
    chosen = logits.log_softmax(-1, dtype=wide).gather(-1, tokens[..., None])[..., 0]
    return -chosen.double().cpu(), (logits.argmax(-1) == tokens).cpu()


def _masked(model: object) -> Masked | None:
    """`model` as a masked oracle, if it is one."""
    if isinstance(model, Transformer):
        return None if model.mask is None else MaskedTransformer(model)
    return model if isinstance(model, Masked) else None


def _next_logits(model: Transformer) -> Callable[[Tensor], Tensor]:
    def logits(tokens: Tensor) -> Tensor:
        bos = tokens.new_full((len(tokens), 1), model.bos)
        inputs = torch.cat((bos, tokens[:, :-1]), 1).to(model.head.weight.device)
        found: Tensor = model(inputs)[:, 1:]
        return found

    return logits


def _answers(model: Autoregressive, first: int = 1) -> Callable[[Tensor], Tensor]:
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


def _require_known(tokens: Tensor, vocab_size: int) -> None:
    wrong = tokens[(tokens < 0) | (tokens >= vocab_size)]
    if len(wrong):
        raise InputError("tokens", int(wrong[0]), f"the model has tokens 0 to {vocab_size - 1}")
