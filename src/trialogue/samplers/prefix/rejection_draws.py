"""Drawing of the next token in `AdaptiveRejection`, which avoids tokens that are known to be rejected."""

import math

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trialogue.errors import InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import mask_tokens, require_support
from trialogue.samplers.prefix.rejection_table import REJECTED, RejectionTable, Visit
from trialogue.samplers.prefix.weighted_rejection import log_masses

_TOLERANCE = 1e-12
"""Relative difference of an upper bound and the mass that it bounds, below which the two are taken to be equal."""


def draw(
    decoding: Decoding,
    rows: Tensor,
    moves: Moves,
    tables: list[RejectionTable | None],
    visits: list[Visit | None],
    verifier: CachedVerifier,
    choose: Choose,
) -> dict[int, RejectionTable | None]:
    """Draw the next token of each row for `AdaptiveRejection`, and write it to `moves` and `visits`.

    The token a after the prefix y is drawn in proportion to p(a|y) times the open mass of ya: the probability
    of all completions of ya that are not known to be rejected. The next-token distribution and the mask are
    needed only for tokens that no earlier attempt has drawn after y.

    Args:
        decoding: The batch of sequences (rows), each a prompt and the completion so far.
        rows: Indices (n,) int64 of incomplete rows.
        moves: The moves of all rows, modified in place.
        tables: For each row of the batch, the rejection table of its prompt.
        visits: For each row of the batch, its last drawn token. Modified in place.
        verifier: The verifier.
        choose: Function that draws one index per row in proportion to given weights.

    Returns:
        An entry for each row whose attempt has ended: the table of the current prefix. None if the mask
            excludes the drawn token, which then needs no table.
    """
    ended = dict[int, RejectionTable | None]()
    known = {row: _table(tables[row], visits[row]) for row in rows.tolist()}
    for row, table in known.items():
        if table is not None and table.log_open == -math.inf:
            ended[row] = REJECTED
    if ended:
        rows = torch.tensor([row for row in known if row not in ended], dtype=torch.int64)
        if not rows.numel():
            return ended
    log_probs = decoding.log_probs(rows)
    require_support(log_probs)
    names = rows.tolist()
    recalled = [(place, table) for place, row in enumerate(names) if (table := known[row]) is not None]
    others = list(range(len(names)))
    if recalled:
        masses = pad_sequence([table.log_masses for _, table in recalled], True, -math.inf)
        branches = choose(masses, rows[[place for place, _ in recalled]]).tolist()
        for (place, table), branch in zip(recalled, branches, strict=True):
            if branch > 0:
                row, token = names[place], int(table.tokens[branch - 1])
                visits[row] = Visit(
                    visits[row], table, token, table.children[token].log_prob, table.log_unvisited, True
                )
                moves.token[row] = token
                others.remove(place)
    if others:
        places = torch.tensor(others)
        if len(others) < len(names):
            log_probs, rows = log_probs[places], rows[places]
        ended |= _draw_unvisited(decoding, rows, log_probs, moves, tables, visits, verifier, choose)
    return ended


def _draw_unvisited(
    decoding: Decoding,
    rows: Tensor,
    log_probs: Tensor,
    moves: Moves,
    tables: list[RejectionTable | None],
    visits: list[Visit | None],
    verifier: CachedVerifier,
    choose: Choose,
) -> dict[int, RejectionTable | None]:
    """Draw a token that no earlier attempt has drawn after the prefix of each row.

    The mask is not applied at a prefix that is visited for the first time. At other prefixes, the stored
    probability of all unvisited tokens may be too large; the attempt then ends with a probability that
    corrects this.

    Args:
        decoding: The batch of sequences (rows), each a prompt and the completion so far.
        rows: Row indices (n,) int64.
        log_probs: Log-probabilities (n, vocab) of their next tokens.
        moves: The moves of all rows, modified in place.
        tables: For each row of the batch, the rejection table of its prompt.
        visits: For each row of the batch, its last drawn token. Modified in place.
        verifier: The verifier.
        choose: Function that draws one index per row in proportion to given weights.

    Returns:
        An entry for each row whose attempt has ended, as returned by `draw`.
    """
    ended = dict[int, RejectionTable | None]()
    known = [_table(tables[row], visits[row]) for row in rows.tolist()]
    allowed, decisive = verifier.masks(rows, log_probs > -math.inf)
    open_, weights = mask_tokens(log_probs, allowed), log_probs
    recalled = [(place, table) for place, table in enumerate(known) if table is not None]
    if recalled:
        for place, table in recalled:
            open_[place, table.tokens] = -math.inf
        places = torch.tensor([place for place, _ in recalled])
        masses = _exact_log_masses(open_[places])
        bounds = torch.tensor([table.log_unvisited for _, table in recalled], dtype=torch.float64)
        share = (masses - bounds).exp()
        share[share > 1 - _TOLERANCE] = 1.0
        goes_on = choose(torch.stack((share, 1 - share), 1).log(), rows[places]) == 0
        for number in (~goes_on).nonzero()[:, 0].tolist():
            place, table = recalled[number]
            ended[int(rows[place])] = table.with_unvisited(float(masses[number]))
        weights = (
            open_.clone() if len(recalled) == len(rows) else log_probs.index_copy(0, places, open_[places])
        )
    going = [place for place, row in enumerate(rows.tolist()) if row not in ended]
    if not going:
        return ended
    if ended:
        kept = torch.tensor(going)
        weights, rows, log_probs, allowed = weights[kept], rows[kept], log_probs[kept], allowed[kept]
        open_, decisive, known = open_[kept], decisive[kept], [known[place] for place in going]
    tokens, each = choose(weights, rows), torch.arange(len(rows))
    excluded = ~allowed[each, tokens]
    # A mask without any token can come from a verifier that raised an error.
    wrong = excluded & decisive & allowed.any(1)
    _require_consistent(decoding, rows, tokens, wrong, tables, verifier)
    open_[each, tokens] = -math.inf
    drawn = zip(
        rows.tolist(),
        tokens.tolist(),
        log_probs[each, tokens].tolist(),
        _exact_log_masses(open_).tolist(),
        excluded.tolist(),
        decisive.tolist(),
        known,
        strict=True,
    )
    for row, token, log_prob, log_unvisited, is_excluded, is_decisive, table in drawn:
        is_allowed = False if is_excluded else True if is_decisive else None
        visits[row] = Visit(visits[row], table, token, log_prob, log_unvisited, is_allowed)
        if is_excluded:
            ended[row] = None
        else:
            moves.token[row] = token
    return ended


def _exact_log_masses(log_probs: Tensor) -> Tensor:
    """Return the `logsumexp` (n,) of `log_probs` (n, vocab), computed in float64."""
    # A row in float64 fits into the cache of a processor, so this is three times as fast as a batch of rows.
    return torch.stack([log_masses(row.double()) for row in log_probs])


def _require_consistent(
    decoding: Decoding,
    rows: Tensor,
    tokens: Tensor,
    excluded: Tensor,
    tables: list[RejectionTable | None],
    verifier: CachedVerifier,
) -> None:
    """Check that the verifier's mask and values agree on tokens that end the first attempt of a sample.

    Args:
        decoding: The batch of sequences (rows), each a prompt and the completion so far.
        rows: Row indices (n,) int64.
        tokens: The token (n,) drawn for each row.
        excluded: Whether the verifier has only masks and they exclude the token, (n,) bool.
        tables: For each row of the batch, the rejection table of its prompt. None in the first attempt of a sample.
        verifier: The verifier.

    Raises:
        InputError: If a mask excludes the token, but the value of the prefix that ends with it is positive.
    """
    first = [place for place in excluded.nonzero()[:, 0].tolist() if tables[int(rows[place])] is None]
    if not first:
        return
    values = verifier.candidates(rows[first], tokens[first])
    for place in values.nonzero()[:1, 0].tolist():
        row = int(rows[first[place]])
        length, token = int(decoding.lengths[row]), int(tokens[first[place]])
        prefix = (*decoding.tokens[row, :length].tolist(), token)
        hint = (
            f"its mask excludes the last token of this prefix, but the value of the prefix is {float(values[place]):g}"
            "; reject every continuation of a rejected prefix"
        )
        raise InputError("verifier", prefix, hint)


def _table(prompt: RejectionTable | None, visit: Visit | None) -> RejectionTable | None:
    """Return the rejection table of the current prefix, or None if no earlier attempt has visited it."""
    if visit is None:
        return prompt
    return None if visit.table is None else visit.table.child(visit.token)
