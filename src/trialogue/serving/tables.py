"""Cache of rejection tables (known rejected prefixes), which requests without a seed share."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from trialogue.samplers.prefix.adaptive_rejection import AdaptiveRejectionState
from trialogue.samplers.prefix.contract.objects import ObjectColumn
from trialogue.samplers.prefix.engine import Submission
from trialogue.samplers.prefix.rejection_table import RejectionTable, merge_tables
from trialogue.samplers.prefix.rejection_table_file import num_new_prefixes
from trialogue.serving.requests import CompletionRequest


class _Entry(NamedTuple):
    table: RejectionTable
    num_prefixes: int


class TableCache:
    """Cache of the rejection tables of `AdaptiveRejection`, by prompt and settings.

    A rejection table stores which prefixes the verifier rejects. A sample starts from the current table. When it ends,
    its table is merged into the cached one. If the cache is full, the least recently used tables are removed. A single
    table that reaches the bound no longer grows. A table affects only the number of model calls, so samples remain
    exact.

    Args:
        max_prefixes: Maximum number of prefixes in all tables.
        report: Function called with a message when a table is removed or no longer grows for the first time.

    Attributes:
        num_prefixes: Number of prefixes in all tables.
    """

    def __init__(self, max_prefixes: int, report: Callable[[str], None]) -> None:
        self._max_prefixes, self._report = max_prefixes, report
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._is_reported = False
        self.num_prefixes = 0

    def __len__(self) -> int:
        """Number of tables."""
        return len(self._entries)

    def table(self, key: bytes) -> RejectionTable | None:
        """Return a table and mark it as used, or return None if there is none.

        Args:
            key: Result of `table_key`.
        """
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key].table

    def merge(self, key: bytes, table: RejectionTable) -> None:
        """Add the prefixes of a table to the cached one.

        Args:
            key: Result of `table_key`.
            table: Table in which a sample has ended.
        """
        before = self.table(key)
        after = merge_tables(before, table)
        assert after is not None
        known = 0 if before is None else self._entries[key].num_prefixes
        new = num_new_prefixes(before, after)
        if known + new > self._max_prefixes:
            self._report_once()
            return
        self._entries[key] = _Entry(after, known + new)
        self.num_prefixes += new
        while self.num_prefixes > self._max_prefixes:
            self.num_prefixes -= self._entries.popitem(last=False)[1].num_prefixes
            self._report_once()

    def _report_once(self) -> None:
        if not self._is_reported:
            self._report(
                f"the tables of the sampler exact have reached --table-prefixes {self._max_prefixes}: the least "
                "recently used are forgotten, which costs model calls; samples remain exact"
            )
        self._is_reported = True


class SharedTable:
    """Shares a rejection table between the samples of a request and all other requests with the same key.

    Args:
        cache: The cache.
        key: Result of `table_key`.

    Attributes:
        submission: The submission of the samples. If its verifier has raised an error, nothing is merged into the
            cache, because an error such as a timeout may not occur again.
    """

    def __init__(self, cache: TableCache, key: bytes) -> None:
        self._cache, self._key = cache, key
        self.submission: Submission | None = None

    ended = 0
    """Number of samples that have ended. It is not counted, because samples do not wait for each other."""
    limit: int | None = None
    """Number of samples that may have begun by now: all."""

    def begin(self, initial: AdaptiveRejectionState) -> AdaptiveRejectionState:
        """Return the starting state of a sample, with the current table.

        Args:
            initial: Initial state of the sampler, one row.
        """
        return initial._replace(table=ObjectColumn([self._cache.table(self._key)]))

    def end(self, number: int, state: AdaptiveRejectionState) -> None:
        """Merge the table of a sample into the cache.

        Args:
            number: Ignored.
            state: Last state of the sample, one row.
        """
        del number
        table = cast(RejectionTable | None, state.table.items[0])
        if table is not None and self.submission is not None and not self.submission.has_raised:
            self._cache.merge(self._key, table)


def table_key(request: CompletionRequest, prompt: Sequence[int]) -> bytes:
    """Return a hash of all settings that determine which continuations of a prompt are accepted.

    Args:
        request: The request.
        prompt: Token ids of one of its prompts.
    """
    verifiers = [(one.kind, one.content, one.name) for one in request.requested_verifiers]
    truncation = sorted(request.sampling.truncation.items())
    ends = request.max_new_tokens, request.body.stop_strings, request.stop_tokens
    settings = (list(prompt), verifiers, truncation, ends, request.penalties)
    return hashlib.sha256(repr(settings).encode()).digest()
