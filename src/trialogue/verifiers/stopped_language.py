"""A language under stop strings: the text before the stop string is judged, inside of tokens too."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.stop_strings import StopStrings
from trialogue.verifiers.vocabularies import END_OF_BYTES, byte_tokenizer, has_given_up, matcher_of, written

_MATCHERS = 1024
_STEP = 64  # bytes behind the longest text that is looked for among those matched before

Tokens = NDArray[np.int64]


class _Ending(NamedTuple):
    """Tokens that end a text in the same place: `cut` bytes before the token's first, or `own` bytes of it further on.

    With `closing` (n,) the stop string is whole; with `opening` (m,) more of it has to come.
    """

    cut: int
    own: bytes
    closing: Tokens
    opening: Tokens


class StoppedLanguage:
    """Membership in the language of `grammar` of what comes before the first of `stops`.

    A matcher of tokens cannot stop within one, so texts are matched by the byte. `error` makes what is raised of a
    matcher that fails. Of the texts of the grammar those are in the language that `accepts` has nothing against.
    """

    def __init__(
        self,
        grammar: str,
        stops: StopStrings,
        tokenization: Tokenization,
        error: Callable[[LLMatcher], Exception],
        accepts: Callable[[bytes], bool],
    ) -> None:
        self._stops, self._error, self._accepts = stops, error, accepts
        self._written = written(tokenization)
        self._start = matcher_of(byte_tokenizer(), grammar)
        if self._start.is_error():
            raise error(self._start)
        self._matchers: OrderedDict[bytes, LLMatcher | None] = OrderedDict()
        self._tables: dict[bytes, tuple[Tokens, list[_Ending]]] = {}

    def prepare(self) -> None:
        """Make now what the first question needs."""
        self._table(b"")

    def verdict(self, tokens: Tokens, ended: bool) -> bool | None:
        """On completion `tokens` (n,) without its end of sequence; None where the stop strings decide nothing."""
        data = self._bytes(tokens)
        if data is None:
            return False if self._stops.find(self._joined(tokens)) is not None else None
        place = self._stops.find(data)
        if place is not None:
            return self._contains(data, len(data) - place, b"")
        if not ended and any(self._contains(data, len(data) - cut, b"") for cut in self._stops.pending(data)):
            return True
        return None

    def correct(self, verdicts: NDArray[np.bool_], tokens: Tokens, last: bool) -> None:
        """Correct `verdicts` (vocab,) on the children of `tokens` (n,) where a stop string begins, goes on or ends.

        A child is complete anyway where it is the `last`. `tokens` contain no stop string themselves.
        """
        data = self._bytes(tokens)
        closing, endings = self._table(self._stops.held(self._joined(tokens) if data is None else data))
        verdicts[closing] = False
        if data is None:
            return
        for ending in endings:
            if last and not len(ending.closing):
                continue
            if self._contains(data, ending.cut, ending.own):
                verdicts[ending.closing] = True
                if not last:
                    verdicts[ending.opening] = True

    def _joined(self, tokens: Tokens) -> bytes:
        return b"".join(self._written[token] for token in tokens.tolist())

    def _bytes(self, tokens: Tokens) -> bytes | None:
        """The bytes of `tokens`; None where one stands for none, which no text of the language has."""
        parts = [self._written[token] for token in tokens.tolist()]
        return b"".join(parts) if all(parts) else None

    def _contains(self, data: bytes, cut: int, own: bytes) -> bool:
        """Whether `data` without its last `cut` bytes, and then `own`, is in the language."""
        before = data[: len(data) - cut]
        matcher = self._matcher(before)
        if matcher is None:
            return False
        # A matcher that nothing can continue has stopped, and says no even to the end.
        if not own or matcher.is_stopped():
            return bool(not own and matcher.is_accepting()) and self._accepts(before)
        member: bool = matcher.validate_tokens([*own, END_OF_BYTES]) == len(own) + 1
        if matcher.is_error():
            raise self._error(matcher)
        return member and self._accepts(before + own)

    def _matcher(self, data: bytes) -> LLMatcher | None:
        """A matcher that has consumed `data`; None where it is no beginning of a text of the language."""
        if data in self._matchers:
            self._matchers.move_to_end(data)
            return self._matchers[data]
        shorter = range(len(data) - 1, max(0, len(data) - _STEP) - 1, -1)
        held = next((size for size in shorter if data[:size] in self._matchers), 0)
        matcher = self._matchers.get(data[:held], self._start)
        if matcher is not None:
            matcher = matcher.deep_copy()
            consumed = matcher.try_consume_tokens(list(data[held:]))
            whole = consumed == len(data) - held
            if matcher.is_error() or (not whole and has_given_up(matcher)):
                raise self._error(matcher)
            matcher = matcher if whole else None
        self._matchers[data] = matcher
        if len(self._matchers) > _MATCHERS:
            self._matchers.popitem(last=False)
        return matcher

    def _table(self, held: bytes) -> tuple[Tokens, list[_Ending]]:
        """The tokens (n,) that complete a stop string behind `held`, and all that matter by where the text ends."""
        if held not in self._tables:
            stops, endings = (
                self._stops,
                defaultdict[tuple[int, bytes], tuple[list[int], list[int]]](lambda: ([], [])),
            )
            for token, own in enumerate(self._written):
                if not own:
                    continue
                data = held + own
                place = stops.find(data)
                for where in stops.pending(data) if place is None else [place]:
                    cut = max(0, len(held) - where), data[len(held) : max(len(held), where)]
                    endings[cut][place is None].append(token)
            table = [
                _Ending(*cut, *(np.array(tokens, dtype=np.int64) for tokens in both))
                for cut, both in endings.items()
            ]
            closing = [ending.closing for ending in table]
            self._tables[held] = np.concatenate(closing or [np.zeros(0, dtype=np.int64)]), table
        return self._tables[held]
