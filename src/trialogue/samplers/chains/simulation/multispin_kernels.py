"""Compiled kernels of multispin coding, which stores 64 chains in each 64-bit word."""

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import compiled

Words = NDArray[np.uint64]

WORDS = 64
"""Words per block (4096 chains). Loops of constant length are vectorised by the compiler."""
BITS = 52
"""Bits of a threshold."""
GROUP = 4
"""Number of random words drawn at a time. The loops over them are unrolled."""

ALL = np.uint64(2**64 - 1)
NONE = np.uint64(0)
_2, _3, _4, _17, _19, _23, _41, _45 = (np.uint64(number) for number in (2, 3, 4, 17, 19, 23, 41, 45))
# Arrays are flat and indices unsigned. Reference counts of views and the wraparound of signed indices would each cost
# as much as the work on a block.
_W = np.uint64(WORDS)
BELOW, _EQUAL = np.uint64(4 * WORDS), np.uint64(5 * WORDS)
COLUMN = np.uint64(2 * WORDS)


@compiled
def next_word(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the next random number of a xoshiro256++ generator, and its new state.

    Args:
        a: First word of the state.
        b: Second word.
        c: Third word.
        d: Fourth word.

    Returns:
        The random number, followed by the four words of the next state.
    """
    total = a + d
    number = ((total << _23) | (total >> _41)) + a
    shifted = b << _17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    return number, a, b, c, (d << _45) | (d >> _19)


@compiled
def draw_words(states: Words, block: np.uint64, work: Words) -> None:
    """Draw the next four random words for each word of a block of chains.

    Args:
        states: States of the random generators. Modified in place.
        block: First entry of the block in `states`.
        work: Output.
    """
    for word in range(WORDS):
        w = np.uint64(word)
        s = block + w
        a, b, c, d = states[s], states[s + _W], states[s + _2 * _W], states[s + _3 * _W]
        work[w], a, b, c, d = next_word(a, b, c, d)
        work[w + _W], a, b, c, d = next_word(a, b, c, d)
        work[w + _2 * _W], a, b, c, d = next_word(a, b, c, d)
        work[w + _3 * _W], a, b, c, d = next_word(a, b, c, d)
        states[s], states[s + _W], states[s + _2 * _W], states[s + _3 * _W] = a, b, c, d


@compiled
def compare(
    work: Words, column: np.uint64, t: np.uint64, u: np.uint64, v: np.uint64, x: np.uint64, fresh: bool
) -> np.uint64:
    """Compare the next four bits of the random number of each chain with the same bits of a threshold.

    Bit i of a 64-bit word belongs to chain i of 64 chains. A number is below the threshold if it has a zero
    and the threshold a one at the first bit in which they differ. Earlier calls have compared the bits
    before.

    Args:
        work: The four random words of each word of chains, followed by the results for each threshold.
            Modified in place.
        column: First entry of the results for this threshold in `work`, relative to those of the first
            threshold.
        t: First of the four bits of the threshold, as a word of ones or zeros.
        u: Second bit.
        v: Third bit.
        x: Fourth bit.
        fresh: Whether these are the first bits of the numbers.

    Returns:
        Word in which a bit is one if the comparison is still undecided for any chain at this bit.
    """
    undecided, start = NONE, ALL if fresh else NONE
    for word in range(WORDS):
        w = np.uint64(word)
        below, equal = work[column + BELOW + w] & ~start, work[column + _EQUAL + w] | start
        bit = work[w]
        below |= equal & ~bit & t
        equal &= ~(bit ^ t)
        bit = work[w + _W]
        below |= equal & ~bit & u
        equal &= ~(bit ^ u)
        bit = work[w + _2 * _W]
        below |= equal & ~bit & v
        equal &= ~(bit ^ v)
        bit = work[w + _3 * _W]
        below |= equal & ~bit & x
        equal &= ~(bit ^ x)
        work[column + BELOW + w], work[column + _EQUAL + w] = below, equal
        undecided |= equal
    return undecided


@compiled
def draw_columns(
    states: Words,
    block: np.uint64,
    thresholds: Words,
    lengths: NDArray[np.int64],
    first: int,
    last: int,
    work: Words,
) -> None:
    """Draw one random number per chain, and store whether it is below each of several thresholds.

    The numbers are drawn four bits at a time. Drawing stops as soon as all comparisons are decided. A block is a group
    of chains that is updated together, 64 words of 64 chains.

    Args:
        states: States of the random generators. Modified in place.
        block: First entry of the block in `states`.
        thresholds: Bits (thresholds, BITS) of the thresholds, as words of ones or zeros.
        lengths: Number (thresholds,) of bits up to the last nonzero bit of each threshold.
        first: Index of the first threshold.
        last: End of the thresholds (exclusive).
        work: Work space, which receives one result per threshold and chain.
    """
    longest = 0
    for column in range(first, last):
        longest = max(longest, lengths[column])
    for place in range(0, longest, GROUP):
        draw_words(states, block, work)
        undecided = NONE
        for column in range(first, last):
            # A number that equals the nonzero bits of the threshold is not below it.
            if place < lengths[column]:
                more = compare(
                    work,
                    np.uint64(column - first) * COLUMN,
                    thresholds[column, place],
                    thresholds[column, place + 1],
                    thresholds[column, place + 2],
                    thresholds[column, place + 3],
                    place == 0,
                )
                if place + GROUP < lengths[column]:
                    undecided |= more
        if undecided == NONE:
            break


@compiled
def select_of_two(
    spins: Words,
    left: np.uint64,
    right: np.uint64,
    site: np.uint64,
    work: Words,
    which: tuple[np.uint64, np.uint64, np.uint64],
    flip: tuple[np.uint64, np.uint64, np.uint64],
) -> None:
    """Set the spin at a site with two neighbors, in all chains of a block. Twice as fast as `select`.

    `draw_columns` has already decided, for 0, 1 and 2 neighbors up, whether the new spin would be up. The
    actual number of neighbors up selects one of these results.

    Args:
        spins: Spins of all chains. Modified in place.
        left: First entry of the left neighbor in `spins`.
        right: First entry of the right neighbor in `spins`.
        site: First entry of the site in `spins`.
        work: Results of `draw_columns`.
        which: First entry in `work` of the result for 0, 1 and 2 neighbors up.
        flip: For each of these results, a word of ones if it is negated, otherwise zeros.
    """
    for word in range(WORDS):
        w = np.uint64(word)
        x, y = spins[left + w], spins[right + w]
        none = work[which[0] + w] ^ flip[0]
        one = work[which[1] + w] ^ flip[1]
        both = work[which[2] + w] ^ flip[2]
        spins[site + w] = (x & y & both) | (~(x | y) & none) | ((x ^ y) & one)


@compiled
def select(
    spins: Words,
    origin: np.uint64,
    neighbours: Words,
    degree: int,
    site: int,
    work: Words,
    drawn: Words,
    flip: Words,
    least: Words,
) -> None:
    """Set the spin at a site with any number of neighbors, in all chains of a block.

    `draw_columns` has already decided, for each number of neighbors up, whether the new spin would be up. The
    actual number of neighbors up selects one of these results.

    Args:
        spins: Spins of all chains. Modified in place.
        origin: First entry of the block in `spins`.
        neighbours: Neighbors (sites, degree) of each site.
        degree: Number of neighbors of the site.
        site: The site.
        work: Results of `draw_columns`.
        drawn: First entry in `work` of the result for each number of neighbors up.
        flip: For each of these results, a word of ones if it is negated, otherwise zeros.
        least: Work space. Row j marks the chains in which j or more neighbors are up.
    """
    place = origin + np.uint64(site) * _W
    for word in range(WORDS):
        least[np.uint64(word)] = ALL
    for count in range(degree + 1):
        row = np.uint64(count + 1) * _W
        for word in range(WORDS):
            least[row + np.uint64(word)] = NONE
        if count == degree:
            break
        beside = origin + neighbours[site, count] * _W
        for lower in range(count, -1, -1):
            row = np.uint64(lower) * _W
            for word in range(WORDS):
                w = np.uint64(word)
                least[row + _W + w] |= least[row + w] & spins[beside + w]
    for count in range(degree + 1):
        row, column, flipped = np.uint64(count) * _W, drawn[count], flip[count]
        for word in range(WORDS):
            w = np.uint64(word)
            exactly = least[row + w] & ~least[row + _W + w]
            others = spins[place + w] if count else NONE
            spins[place + w] = others | (exactly & (work[column + w] ^ flipped))


@compiled
def sweep_words(
    first: int,
    last: int,
    spins: Words,
    states: Words,
    neighbours: Words,
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    thresholds: Words,
    lengths: NDArray[np.int64],
    columns: NDArray[np.int64],
    drawn: Words,
    flip: Words,
    sweeps: int,
) -> None:
    """Run Gibbs sweeps for some blocks of chains, updating all sites in order.

    Args:
        first: First block.
        last: End of the blocks.
        spins: Spins (blocks * sites * WORDS,). Modified in place.
        states: Generator states (blocks * 4 * WORDS,). Modified in place.
        neighbours: Neighbours (sites, degree) of each site.
        degrees: Number (sites,) of neighbours.
        classes: Class (sites,) of each site. Sites of one class have the same couplings and field.
        thresholds: Bits (thresholds, BITS) of the thresholds of all classes.
        lengths: Number (thresholds,) of bits up to the last nonzero bit.
        columns: First threshold (classes + 1,) of each class.
        drawn: Where the comparison for each class and number of neighbours up (classes, degree + 1) is stored.
        flip: Mask (classes, degree + 1) that negates the result of the comparison.
        sweeps: Number of sweeps.
    """
    most, sites = drawn.shape[1], len(degrees)
    work = np.empty((GROUP + 2 * most) * WORDS, np.uint64)
    least = np.empty((most + 1) * WORDS, np.uint64)
    for block in range(first, last):
        state, origin = np.uint64(block) * _4 * _W, np.uint64(block) * np.uint64(sites) * _W
        for _ in range(sweeps):
            for site in range(sites):
                degree, kind = degrees[site], classes[site]
                draw_columns(states, state, thresholds, lengths, columns[kind], columns[kind + 1], work)
                if degree == 2:
                    select_of_two(
                        spins,
                        origin + neighbours[site, 0] * _W,
                        origin + neighbours[site, 1] * _W,
                        origin + np.uint64(site) * _W,
                        work,
                        (drawn[kind, 0], drawn[kind, 1], drawn[kind, 2]),
                        (flip[kind, 0], flip[kind, 1], flip[kind, 2]),
                    )
                else:
                    select(spins, origin, neighbours, degree, site, work, drawn[kind], flip[kind], least)
