"""The batch of sequences that the engine moves: what the samplers see of it, and what only the engine may do to it."""

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.indices import first_outside, require_int64
from trialogue.oracles import Autoregressive, Decoding, as_context, as_oracle
from trialogue.oracles.output_checks import require_log_probs
from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.batch.answers import Distributions
from trialogue.samplers.prefix.batch.evaluations import Evaluations
from trialogue.samplers.prefix.batch.knowledge import Bill, Knowledge, Meter
from trialogue.samplers.prefix.batch.rows import Ends, Rows, Stop, Stopping
from trialogue.samplers.prefix.batch.scores import Scores
from trialogue.samplers.prefix.batch.tree import Root
from trialogue.samplers.prefix.moves import Moves
from trialogue.samplers.truncation import Truncated

DEFAULT_MEMORY = 1 << 16
_VISITED, _LEAST_VISITED = 16, 1 << 16  # prefixes in the tree for each that is remembered, and in any case


class View(Decoding):
    """A decoding as samplers and verifiers see it: `rows`, what is evaluated of them, and what the run knows.

    `scratch_rows` are as many children as it is wise to evaluate at once. `scores` are told the distributions that are
    answered. `truncations` say, by rule, how the distributions of rows are truncated, where that is not the same for
    all.
    """

    def __init__(
        self,
        vocab_size: int,
        rows: Rows,
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


class Batch(View):
    """Rows that the engine adds, moves and removes, on up to `slots` storage rows of `capacity` tokens.

    `layers` are those whose hidden states are asked for, `memory` the number of nodes that are remembered. With
    `scored` the oracle's log-probabilities, before truncation, are accumulated along each completion. What holds for
    the rows under one rule alone is given by rule: how they `stop`, and `truncations` of the oracle's distributions.
    """

    def __init__(
        self,
        oracle: Autoregressive,
        slots: int,
        capacity: int,
        *,
        layers: tuple[int, ...] = (),
        memory: int = DEFAULT_MEMORY,
        stop: Stop | Mapping[int, Stop] | None = None,
        scored: bool = False,
        truncations: Mapping[int, Truncated] | None = None,
    ) -> None:
        oracle = as_oracle(oracle)
        self._most_visited = max(_LEAST_VISITED, _VISITED * memory)
        knowledge, bill = Knowledge(oracle.vocab_size, memory), Bill(Meter(0), torch.arange(0))
        stopping = None if stop is None else Stopping(stop, knowledge.tree)
        rows = Rows(knowledge.tree, capacity, Ends(oracle.eos, oracle.prompts_go_on, stopping))
        context = as_context(oracle.open(slots, capacity, layers))
        evaluated = torch.full((slots, capacity + 1), -1)
        evaluations = Evaluations(lambda: context, evaluated, rows.lengths, rows, knowledge, bill)
        scores = Scores(capacity) if scored else None
        scratch_rows = max(slots, oracle.batch_size)
        super().__init__(
            oracle.vocab_size, rows, evaluations, knowledge, bill, scratch_rows, scores, truncations
        )

    @property
    def log_prob(self) -> Tensor:
        """Log-probabilities (rows,) of the completions, before truncation; NaN where they were not asked for."""
        assert self._scores is not None, "open the batch with scored=True"
        return self._scores.values.gather(1, self._rows.lengths[:, None])[:, 0]

    def token_log_probs(self, rows: Tensor) -> Tensor:
        """Log-probabilities (n, capacity) of the tokens of the completions of `rows` (n,), as `log_prob`; else 0."""
        assert self._scores is not None, "open the batch with scored=True"
        scores = self._scores.values[rows].diff(dim=1)
        places = torch.arange(scores.shape[1])
        within = (places >= self.start[rows, None]) & (places < self.lengths[rows, None])
        return torch.where(within, scores, 0.0)

    def add(
        self, tokens: Tensor, lengths: Tensor, start: Tensor, limit: Tensor, rule: Tensor | None = None
    ) -> None:
        """Append rows: sequences `tokens` (n, capacity) of `lengths` (n,) whose first `start` are the prompt.

        `rule` (n,) is which of the run's rules each is under, by default the first.
        """
        self._rows.add(tokens, lengths, start, limit, rule)
        self._evaluations.add(len(tokens))
        if self._scores is not None:
            self._scores.add(len(tokens))
        self.meter.extend(len(tokens))
        self._bill.owner = self._rows.everything

    def select(self, rows: Tensor) -> None:
        """Keep `rows`, in that order; the storage of the others is free for new ones."""
        self._rows.select(rows)
        self._evaluations.select(rows)
        if self._scores is not None:
            self._scores.select(rows)
        self.meter.select(rows)
        self._bill.owner = self._rows.everything

    def forget(self, roots: Iterable[Root]) -> None:
        """Forget all that is known below `roots`, of which there are no rows and will be none."""
        self._renumber(self.knowledge.tree.forget(roots))

    def shrink(self) -> None:
        """Forget prefixes where more are known than there is memory for: none that rows stand on, leaves first."""
        if self.knowledge.tree.size > self._most_visited:
            path = self._rows.path
            held = torch.arange(path.shape[1]) <= self._rows.lengths[:, None]
            self._renumber(self.knowledge.tree.shrink(self._most_visited, path[held]))

    def _renumber(self, new: Tensor | None) -> None:
        """Nodes have `new` ids (nodes,), -1 where they were forgotten; or, if None, those that they had."""
        if new is not None:
            for answers in self.knowledge.answers.values():
                answers.renumber(new)
            for part in (self.knowledge.memory, self.knowledge.weighed, self._rows, self._evaluations):
                part.renumber(new)

    def apply(self, moves: Moves) -> None:
        """Move the rows: continue from their sources, cut, append.

        Raises `InputError` for moves of other rows than these, or of tokens that do not exist or have no room.
        """
        source, held = moves.source, self._rows.lengths
        for field in ("source", "length", "token"):
            hint = f"give one number in int64 for each of the {len(held)} rows"
            require_int64(f"moves.{field}", getattr(moves, field), (len(held),), hint)
        if not torch.equal(source, self._rows.everything):
            place = kernels.first_misplaced(source.numpy(), moves.length.numpy(), held.numpy())
            if place >= 0:
                wrong = (int(source[place]), int(moves.length[place]))
                hint = (
                    f"row {place} continues from a row of the batch, and from no more tokens than that holds"
                )
                raise InputError("moves", wrong, hint)
            moved, held = (source != self._rows.everything).nonzero()[:, 0], held[source]
            self._continue_from(source[moved], moved, moves.length[moved])
        self._rows.advance(held, moves.length, moves.token)
        if self._scores is not None:
            self._scores.apply(moves)

    def _continue_from(self, source: Tensor, rows: Tensor, lengths: Tensor) -> None:
        self._rows.continue_from(source, rows)
        if self._scores is not None:
            self._scores.continue_from(source, rows)
        self._evaluations.continue_from(source, rows, lengths)


def _single(log_laws: Tensor) -> Tensor:
    """Return log-probabilities in half precision as float32, and others as they are."""
    return log_laws.float() if log_laws.dtype in (torch.float16, torch.bfloat16) else log_laws
