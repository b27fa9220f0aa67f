"""A batch as a sampler sees it, and the distributions that were cut last."""

from torch import Tensor

from trialogue.oracles import Decoding


class CutWatched(Decoding):
    """The `decoding` itself; `uncut` are the distributions (n, vocab) that it was last asked to cut, None before
    that.
    """

    def __init__(self, decoding: Decoding) -> None:
        self._decoding, self.vocab_size, self.eos = decoding, decoding.vocab_size, decoding.eos
        self.uncut: Tensor | None = None

    @property
    def tokens(self) -> Tensor:
        """Prompts and completions (rows, capacity) int64."""
        return self._decoding.tokens

    @property
    def lengths(self) -> Tensor:
        """Lengths (rows,) int64 of prompt and completion."""
        return self._decoding.lengths

    @property
    def start(self) -> Tensor:
        """Lengths (rows,) int64 of the prompts."""
        return self._decoding.start

    @property
    def limit(self) -> Tensor:
        """Lengths (rows,) int64 at which rows are complete."""
        return self._decoding.limit

    @property
    def complete(self) -> Tensor:
        """Which rows (rows,) bool are complete."""
        return self._decoding.complete

    @property
    def node(self) -> Tensor:
        """Ids (rows,) int64 of the prefixes."""
        return self._decoding.node

    def log_probs(self, rows: Tensor, lengths: Tensor | None = None, cut: bool = True) -> Tensor:
        """The next-token distribution (n, vocab) of each row, as of `Decoding`: one query per row asked."""
        distributions = self._decoding.log_probs(rows, lengths, cut=False)
        return self.cut(distributions, rows) if cut else distributions

    def cut(self, log_laws: Tensor, rows: Tensor | None = None) -> Tensor:
        """What top-k and top-p keep of `log_laws` (n, vocab) of `rows` (n,), renormalised."""
        self.uncut = log_laws
        return self._decoding.cut(log_laws, rows)

    def hidden(self, layer: int, rows: Tensor) -> Tensor:
        """Hidden state (n, width) after `layer` blocks at the last position of each row."""
        return self._decoding.hidden(layer, rows)

    def peek(self, tokens: Tensor, rows: Tensor) -> Decoding:
        """Children on scratch rows: row i continues `rows[i]` with `tokens[i]` (both (n,))."""
        return self._decoding.peek(tokens, rows)
