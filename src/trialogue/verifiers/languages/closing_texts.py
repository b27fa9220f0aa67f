"""Number of tokens that complete the beginning of a text of a formal language.

It is exact for a regular language with an automaton of moderate size, and otherwise that of a short text that a search
finds. A mask that keeps only tokens after which such a text fits into the remaining tokens makes every text complete.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.languages.automaton import NEVER, ByteAutomaton, TokenAutomaton
from trialogue.verifiers.languages.object_keys import KeyState, unescape
from trialogue.verifiers.languages.token_spellings import token_spellings
from trialogue.verifiers.languages.vocabularies import (
    END_OF_BYTES,
    allowed_bytes,
    byte_tokenizer,
    make_matcher,
    string_ending_tokenizer,
)

_MAX_BYTES = 2000
_MAX_STATES = 1000
_MAX_TABLES = 128
_MAX_TEXTS = 20_000
Costs = NDArray[np.int32]


class RegularClosings:
    """Counts the tokens of the shortest completions of texts of a regular language.

    Args:
        pattern: Regular expression of the language.
        tokenization: Tokenization of the language model.

    Raises:
        InputError: If the automaton of the language is too large.
    """

    def __init__(self, pattern: str, tokenization: Tokenization) -> None:
        of_bytes = ByteAutomaton.from_pattern(pattern)
        self._of_tokens = TokenAutomaton.compile(of_bytes, tokenization.token_bytes, None)
        self._moves, self._counts = of_bytes.moves, self._of_tokens.shortest_completions()

    def cost(self, text: bytes, _: KeyState | None = None) -> int:
        """Return the number of tokens of the shortest completion of a text, `NEVER` if there is none."""
        return int(self._counts[self._state(text)])

    def costs(self, text: bytes, viable: NDArray[np.bool_]) -> Costs:
        """Return the number of tokens of the shortest completion of a text followed by each token.

        Args:
            text: Beginning of a text of the language.
            viable: Whether each token (vocab,) may follow.

        Returns:
            Counts (vocab,) int32, `NEVER` for tokens that may not follow.
        """
        following = self._of_tokens.moves[self._of_tokens.token_class, self._state(text)]
        return np.where(viable, self._counts[following], NEVER).astype(np.int32)

    def _state(self, text: bytes) -> int:
        state = 0
        for byte in text:
            state = int(self._moves[state, byte])
        return state


class ClosingTexts:
    """Finds short completions of texts, and counts their tokens.

    For a JSON grammar, the completion closes the string, list or object that is open, and adds only required keys. None
    is found after a token that ends inside a character or an escape sequence of a string. For
    other grammars, it is the shortest completion in bytes that a breadth-first search finds. The search treats bytes
    after which the same bytes can follow as equivalent. In both cases a shorter completion may exist.

    Args:
        grammar: Grammar in llguidance's dialect of Lark.
        names: Required keys of the objects of a JSON grammar, None for another grammar.
        tokenization: Tokenization of the language model.
    """

    def __init__(self, grammar: str, names: frozenset[str] | None, tokenization: Tokenization) -> None:
        self._start = make_matcher(byte_tokenizer(), grammar)
        self._grammar, self._tokenization = grammar, tokenization
        self._keys = (
            None if names is None else [f"{json.dumps(name)[1:]}:".encode() for name in sorted(names)]
        )
        self._bytes = tokenization.token_bytes
        self._count = lru_cache(maxsize=_MAX_TEXTS)(token_spellings(tokenization).count)
        self._string_ends: LLMatcher | None = None
        self._texts = OrderedDict[bytes, bytes | None]()
        self._tables = OrderedDict[tuple[bytes, bytes, KeyState | None], Costs]()

    def closing(self, text: bytes, state: KeyState | None = None) -> bytes | None:
        """Return a short completion of a text, or None if none was found.

        Args:
            text: Beginning of a text of the language.
            state: Keys of a JSON text (default: found in `text`, which takes longer).
        """
        if text not in self._texts:
            matcher = self._start.deep_copy()
            is_viable = matcher.try_consume_tokens(list(text)) == len(text)
            self._texts[text] = self._complete(text, matcher, state) if is_viable else None
            if len(self._texts) > _MAX_TEXTS:
                self._texts.popitem(last=False)
        return self._texts[text]

    def cost(self, text: bytes, state: KeyState | None = None) -> int:
        """Return the number of tokens of a short completion of a text, `NEVER` if none was found.

        Args:
            text: Beginning of a text of the language.
            state: Keys of a JSON text (default: found in `text`, which takes longer).
        """
        closing = self.closing(text, state)
        count = None if closing is None else self._count(closing)
        return NEVER if count is None else count

    def costs(self, text: bytes, viable: NDArray[np.bool_]) -> Costs:
        """Return the number of tokens of a short completion of a text followed by each token.

        Texts with the same short completion, after which the same tokens can follow, share their results.

        Args:
            text: Beginning of a text of the language.
            viable: Whether each token (vocab,) may follow.

        Returns:
            Counts (vocab,) int32, `NEVER` for tokens that may not follow.
        """
        closing, state = self.closing(text), self._key_state(text)
        used = None if state is None else _distinguishing(state)
        key = b"" if closing is None else closing, np.packbits(viable).tobytes(), used
        if key in self._tables:
            self._tables.move_to_end(key)
            return self._tables[key]
        costs = np.full(len(viable), NEVER, dtype=np.int32)
        matcher = self._start.deep_copy()
        matcher.try_consume_tokens(list(text))
        counts = (
            {kept: self._count(closing[len(closing) - kept :]) for kept in range(len(closing) + 1)}
            if closing is not None
            else {}
        )
        in_string = state is not None and state.begun is not None
        value = state if state is not None and state.begun == b"" and not state.is_key else None
        # A part of a string that is not a key adds no keys.
        repeats_closing = value is not None and closing is not None and value.advance(closing) is None
        others = viable
        if value is not None and closing is not None and closing.startswith(b'"') and not repeats_closing:
            known, ending = self._string_endings(text)
            costs[viable & known & ending] = self.cost(text, state)
            others = viable & ~known
        for token in np.flatnonzero(others).tolist():
            own = self._bytes[token]
            rest = None if closing is None else _common_closing(matcher, own, closing, in_string)
            if rest is None or state is None:
                repeats = False
            elif value is not None and b'"' not in own and b"\\" not in own:
                repeats = repeats_closing
            else:
                repeats = state.advance(own + rest) is None
            if rest is not None and not repeats:
                count = counts[len(rest)]
            elif in_string and b'"' not in own and not repeats:
                # For example, a token that ends inside a character. A search for each of them would take too long.
                count = None
            else:
                count = self.cost(text + own, None if state is None else state.advance(own))
            costs[token] = NEVER if count is None else count
        self._tables[key] = costs
        if len(self._tables) > _MAX_TABLES:
            self._tables.popitem(last=False)
        return costs

    def _key_state(self, text: bytes) -> KeyState | None:
        """Return the state of the keys of a text, or None if there is none."""
        return None if self._keys is None else KeyState().advance(text)

    def _string_endings(self, text: bytes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Find the tokens that may be followed by the quotation mark that ends the string.

        Args:
            text: Beginning of a JSON text that ends inside a string.

        Returns:
            Bool array (vocab,) that is True for tokens about which this is known, and bool array (vocab,) that is True
            for those after which the string may end. Tokens with quotation marks or backslashes are not known.
        """
        tokenizer, plain = string_ending_tokenizer(self._tokenization)
        if self._string_ends is None:
            self._string_ends = make_matcher(tokenizer, self._grammar)
        matcher = self._string_ends.deep_copy()
        matcher.try_consume_tokens(list(text))
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        # The mask is empty if the matcher has exceeded its limits.
        known = np.zeros_like(plain) if matcher.is_error() else plain
        return known, bits[END_OF_BYTES : END_OF_BYTES + len(plain)].astype(np.bool_)

    def _complete(self, text: bytes, matcher: LLMatcher, state: KeyState | None) -> bytes | None:
        added = b""
        if self._keys is None:
            state = None
        elif state is None and (state := self._key_state(text)) is None:
            return None
        while len(added) < _MAX_BYTES:
            if matcher.is_accepting():
                return added
            path = None if state is None else self._path_in_json(text + added, matcher, state)
            if path is None:
                path = _search(matcher, None if state is None or state.begun is None else b'"')
            if path is None:
                return None
            matcher.try_consume_tokens(list(path))
            added += path
            state = None if state is None else state.advance(path)
        return None

    def _path_in_json(self, text: bytes, matcher: LLMatcher, state: KeyState) -> bytes | None:
        """Return the next bytes that close a JSON text, or None if a search must find them."""
        allowed = allowed_bytes(matcher)
        if len(allowed) == 1:
            return bytes(allowed)
        if state.begun is None:
            # A number that begins with 1 can end soon, also if it must be positive.
            order = b'}],:1023456789"ntf[{-'
            return next((bytes([byte]) for byte in order if byte in allowed), None)
        if ord('"') in allowed and not text.replace(b"\\\\", b"").endswith(b"\\") and state.advance(b'"'):
            return b'"'
        # A string that must not end here may be a key.
        begun = text[text.rindex(b'"') + 1 :]
        for key in self._keys or ():
            rest = key[len(begun) :]
            is_allowed = matcher.validate_tokens(list(rest)) == len(rest)
            if key.startswith(begun) and is_allowed and state.advance(rest):
                return rest
        return None


def _common_closing(matcher: LLMatcher, own: bytes, closing: bytes, in_string: bool) -> bytes | None:
    """Return an end of `closing` that completes the text after a token, or None if a search must find a completion."""
    if closing.startswith(own):
        return closing[len(own) :]
    if in_string and b'"' not in own and b"\\" not in own:
        # The token is a part of a string, of which only the length affects what follows.
        stop = closing.index(b'"')
        kept = closing[min(len(own), stop) :]
        data = [*own, *kept[: kept.index(b'"') + 1]]
        return kept if matcher.validate_tokens(data) == len(data) else None
    return None


def _distinguishing(state: KeyState) -> KeyState:
    """Return the part of the state that affects which keys may follow."""
    used = state.keys[-1] if state.is_key else None
    begins_used_key = used is not None and any(key.startswith(unescape(state.begun or b"")) for key in used)
    return state if begins_used_key else state._replace(begun=None)


def _search(start: LLMatcher, goal: bytes | None) -> bytes | None:
    """Return the shortest bytes after which `goal` is allowed, or the text may be complete if `goal` is None."""
    level, states = [(b"", start)], 0
    while level and states < _MAX_STATES:
        following = list[tuple[bytes, LLMatcher]]()
        for written, matcher in level:
            for longer in _distinct_children(written, matcher, in_string=goal is not None):
                states += 1
                if _reaches(longer[1], goal):
                    return longer[0]
                following.append(longer)
        level = following
    return None


def _reaches(matcher: LLMatcher, goal: bytes | None) -> bool:
    if goal is None:
        return bool(matcher.is_accepting())
    return not matcher.is_stopped() and bool(matcher.validate_tokens(list(goal)) == len(goal))


def _distinct_children(
    written: bytes, matcher: LLMatcher, in_string: bool
) -> Iterator[tuple[bytes, LLMatcher]]:
    """Yield the texts that are one byte longer, one for each set of bytes that may follow next.

    In a JSON string, these are the printable characters of ASCII without the backslash, unless none of them may follow.
    """
    if matcher.is_stopped():
        return
    seen = set[tuple[bool, bytes]]()
    allowed = allowed_bytes(matcher)
    plain = [byte for byte in allowed if 32 <= byte < 127 and byte != ord("\\")] if in_string else []
    for byte in plain or allowed:
        longer = matcher.deep_copy()
        longer.consume_token(byte)
        following = b"" if longer.is_stopped() else longer.compute_bitmask()
        signature = bool(longer.is_accepting()), following
        if signature not in seen:
            seen.add(signature)
            yield written + bytes([byte]), longer
