"""What samplers and verifiers see of a batch of sequences."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.indices import first_outside, require_int64
from trialogue.oracles import Decoding
from trialogue.oracles.output_checks import require_log_probs
from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.batch.answers import Distributions
from trialogue.samplers.prefix.batch.evaluations import Evaluations
from trialogue.samplers.prefix.batch.knowledge import Bill, Knowledge, Meter
from trialogue.samplers.prefix.batch.rows import BatchRows
from trialogue.samplers.prefix.batch.scores import Scores
from trialogue.samplers.truncation import Truncated


class View(Decoding):
    """A decoding as samplers and verifiers see it: `rows`, what is evaluated of them, and what the run knows.

    `scratch_rows` are as many children as it is wise to evaluate at once. `scores` are told the distributions that are
    answered. `truncations` say, by rule, how the distributions of rows are truncated, where that is not the same for
    all.
    """

    def __init__(
        self,
        vocab_size: int,
        rows: BatchRows,
        evaluations: Evaluations,
        knowledge: Knowledge,
        bill: Bill,
        scratch_rows: int,
        scores: Scores | None = None,
        truncations: Mapping[int, Truncated] | None = None,
    ) -> None:
        self._truncations = truncations
        self.vocab_size, self.eos, self.scratch_rows = vocab_size, rows.ends.eos, scratch_rows
        self._rows, self._evaluations, self._scores = rows, evaluations, scores
        self.knowledge, self._bill = knowledge, bill

    @property
    def tokens(self) -> Tensor:
        """Prompts and completions (rows, capacity) int64."""
        return self._rows.tokens

    @property
    def lengths(self) -> Tensor:
        """Lengths (rows,) int64."""
        return self._rows.lengths

    @property
    def start(self) -> Tensor:
        """Lengths (rows,) int64 of the prompts."""
        return self._rows.start

    @property
    def limit(self) -> Tensor:
        """Lengths (rows,) int64 at which rows are complete."""
        return self._rows.limit

    @property
    def rule(self) -> Tensor:
        """Which of the run's rules (rows,) int64 each row is under."""
        return self._rows.rule

    @property
    def complete(self) -> Tensor:
        """Which rows (rows,) are complete."""
        return self._rows.complete

    @property
    def node(self) -> Tensor:
        """Node ids (rows,) of the rows' prefixes."""
        return self._rows.node

    def nodes(self, rows: Tensor) -> Tensor:
        """Node ids (n,) of the prefixes of `rows` (n,)."""
        return self._rows.path[rows, self._rows.lengths[rows]]

    @property
    def growing(self) -> Tensor:
        """The rows (n,) that are not complete."""
        return self._rows.growing

    @property
    def meter(self) -> Meter:
        """What the rows of the run have cost."""
        return self._bill.meter

    def log_probs(self, rows: Tensor, lengths: Tensor | None = None, cut: bool = True) -> Tensor:
        """Ask for the next-token distribution (n, vocab) of each row, cut to `lengths` (n,): one query per row asked.

        Unless `cut`, it is the distribution before top-k and top-p. Raises `InputError` for rows that do not exist, and
        for lengths that they do not have.
        """
        lengths = self._cut_to(rows, lengths)
        features = self._evaluations.features(rows, lengths, counting=True)
        if features.shape[1] < self.vocab_size:
            nodes = self._rows.of(self._rows.path, rows).gather(1, lengths[:, None])[:, 0]
            distributions = self.knowledge.answers[cut].of(
                nodes, lambda asked: self._laws(features[asked], cut, rows, asked)
            )
        else:
            # A head that is no larger than what it reads, or none, is applied as fast as its answers are copied.
            distributions = self._laws(features, cut, rows)
        if self._scores is not None:
            self._scores.answered(rows, lengths, distributions[-1])
        return distributions[0]

    def cut(self, log_laws: Tensor, rows: Tensor | None = None) -> Tensor:
        """What top-k and top-p keep of `log_laws` (n, vocab) of `rows` (n,), renormalised."""
        if self._truncations is None:
            return self._evaluations.context.cut(log_laws)
        if rows is None:
            different = set(self._truncations.values())
            if len(different) != 1:
                raise InputError(
                    "rows", None, "rows are cut each in its own way: say whose distributions these are"
                )
            return different.pop().cut(log_laws)
        return self._each(log_laws, rows, Truncated.cut)

    def _laws(self, features: Tensor, cut: bool, rows: Tensor, asked: Tensor | None = None) -> Distributions:
        """Distributions by `features` (m, features) of `rows` (n,), or of those of them that are `asked` (m,)."""
        answers, untruncated = self._evaluations.context.distributions(features, cut)
        if not self.knowledge.checked:
            shape = (len(features), self.vocab_size)
            require_log_probs("oracle", untruncated, shape)
            if answers is not untruncated:
                require_log_probs("oracle", answers, shape)
            self.knowledge.checked = True
        if self._truncations is not None:
            own = _single(untruncated).to(self._rows.tokens.device)
            rows = rows if asked is None else rows[asked]
            return self._each(own, rows, Truncated.truncate if cut else Truncated.temper), own
        different = (answers,) if untruncated is answers else (answers, untruncated)
        # Random choices and values need at least single precision.
        return tuple(_single(distributions).to(self._rows.tokens.device) for distributions in different)

    def _each(self, log_laws: Tensor, rows: Tensor, alter: Callable[[Truncated, Tensor], Tensor]) -> Tensor:
        """`log_laws` (n, vocab), altered by the truncation that each of `rows` (n,) is under."""
        assert self._truncations is not None
        places: dict[Truncated, list[int]] = {}
        for place, rule in enumerate(self._rows.rule[rows].tolist()):
            places.setdefault(self._truncations[rule], []).append(place)
        if len(places) == 1:
            return alter(next(iter(places)), log_laws)
        altered = torch.empty_like(log_laws)
        for truncation, own in places.items():
            altered[own] = alter(truncation, log_laws[own])
        return altered

    def hidden(self, layer: int, rows: Tensor) -> Tensor:
        """Hidden state (n, width) after `layer` blocks at the last position of each row."""
        features = self._evaluations.features(rows, self._cut_to(rows))
        return self._evaluations.context.hidden(features, layer)

    def _cut_to(self, rows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the lengths (n,) that `rows` (n,) are cut to, by default their own; all are checked."""
        held = self._rows.lengths
        if rows is not self._rows.everything:
            self._require_rows(rows)
            if lengths is None:
                return held[rows]
        elif lengths is None:
            return held
        require_int64("lengths", lengths, (len(rows),), "give one length in int64 for each row")
        place = kernels.first_misplaced(rows.numpy(), lengths.numpy(), held.numpy())
        if place >= 0:
            wrong = (int(rows[place]), int(lengths[place]))
            raise InputError(
                "rows, lengths", wrong, "name rows of the batch, and no more tokens than they hold"
            )
        return lengths

    def _require_rows(self, rows: Tensor) -> None:
        """Raise `InputError` unless `rows` (n,) int64 are rows of the batch."""
        require_int64("rows", rows, (None,), "give the numbers of rows (n,) in int64")
        index = first_outside(rows, len(self._rows))
        if index is not None:
            raise InputError("rows", index, f"the batch has {len(self._rows)} rows")

    def count_verifier_calls(self, rows: Tensor) -> None:
        """Count one verifier call per row in `rows` (n,)."""
        self.meter.verifier_calls.index_add_(0, self._bill.owner[rows], torch.ones_like(rows))

    def peek(self, tokens: Tensor, rows: Tensor) -> "View":
        """Children on scratch rows: row i continues `rows[i]` with `tokens[i]` (both (n,)).

        They share the tree, what is remembered and the meter; their keys are copied when first needed. Raises
        `InputError` for rows and tokens that do not exist.
        """
        self._require_rows(rows)
        require_int64("tokens", tokens, (len(rows),), "give one token in int64 for each row")
        token = first_outside(tokens, self.vocab_size)
        if token is not None:
            raise InputError("tokens", token, f"use tokens below {self.vocab_size}")
        children, bill = self._rows.children(tokens, rows), self._bill.of(rows)
        evaluations = self._evaluations.children(rows, children, bill)
        return View(
            self.vocab_size,
            children,
            evaluations,
            self.knowledge,
            bill,
            self.scratch_rows,
            truncations=self._truncations,
        )


def _single(log_laws: Tensor) -> Tensor:
    """Return log-probabilities in half precision as float32, and others as they are."""
    return log_laws.float() if log_laws.dtype in (torch.float16, torch.bfloat16) else log_laws
