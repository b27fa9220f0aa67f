"""The paged cache gives every row the values of a cache that stores each row separately."""

from collections.abc import Iterator

import numpy as np
import pytest

from trialogue.models.openvino.paged_cache import BLOCK_SIZE, BlockPool, PagedCache
from trialogue.randomness import numpy_generator

ROWS, CAPACITY = 5, 100
STORES, HEADS, SIZE = 2, 3, 4
EMPTY = -1.0


class Reference:
    """A cache that stores one value for each position of each row."""

    def __init__(self, rows: int) -> None:
        self.values = np.full((rows, CAPACITY), EMPTY)


def new_pool(blocks: int = 2) -> BlockPool:
    return BlockPool(STORES, (HEADS, BLOCK_SIZE, SIZE), np.float32, blocks)


def write(cache: PagedCache, row: int, first: int, values: np.ndarray) -> None:
    """Write one value per position, as the attention operator does."""
    stop = first + len(values)
    cache.prepare(np.array([row]), np.array([first]), np.array([stop]))
    for position, value in enumerate(values, first):
        block = cache.tables[row, position // BLOCK_SIZE]
        cache.pool.memory[:, block, :, position % BLOCK_SIZE] = value


def read(cache: PagedCache, row: int, position: int) -> np.ndarray:
    block = cache.tables[row, position // BLOCK_SIZE]
    assert block >= 0
    return cache.pool.memory[:, block, :, position % BLOCK_SIZE]


def assert_equal(cache: PagedCache, reference: Reference) -> None:
    for row, position in zip(*np.nonzero(reference.values != EMPTY), strict=True):
        assert (read(cache, row, position) == reference.values[row, position]).all(), (row, position)


def count_references(pool: BlockPool, caches: list[PagedCache]) -> None:
    """Assert that the pool counts exactly the blocks in the tables."""
    pool.take(0)
    counted = np.zeros_like(pool._references)
    for cache in caches:
        np.add.at(counted, cache.tables[cache.tables >= 0], 1)
    assert np.array_equal(counted, pool._references)


def schedule(seed: int) -> Iterator[tuple[str, np.random.Generator]]:
    draw = numpy_generator(seed, "schedule of a paged cache")
    for name in draw.choice(["write", "copy", "fork"], 60, p=[0.5, 0.35, 0.15]):
        yield str(name), draw


@pytest.mark.parametrize("seed", range(2))
def test_writes_copies_and_forks(seed):
    pool, number = new_pool(), 0
    pairs = [(PagedCache(pool, ROWS, CAPACITY), Reference(ROWS))]
    for name, draw in schedule(seed):
        place = int(draw.integers(len(pairs)))
        cache, reference = pairs[place]
        if name == "write":
            row = int(draw.integers(ROWS))
            filled = int((reference.values[row] != EMPTY).cumprod().sum())
            first = int(draw.integers(filled + 1)) if filled < CAPACITY else filled - 5
            values = np.arange(number, number + min(CAPACITY - first, int(draw.integers(1, 50)))) + 1.0
            number += len(values)
            write(cache, row, first, values)
            reference.values[row, first : first + len(values)] = values
        elif name == "copy":
            rows = draw.permutation(ROWS)[: int(draw.integers(1, ROWS + 1))]
            source = draw.integers(ROWS, size=len(rows))
            first, stop = np.sort(draw.choice(CAPACITY + 1, 2, replace=False))
            cache.copy(source, rows, int(first), int(stop))
            reference.values[rows, first:stop] = reference.values[source, first:stop]
        else:
            rows = draw.integers(ROWS, size=ROWS)
            forked = Reference(ROWS)
            forked.values = reference.values[rows].copy()
            pairs.append((cache.fork(rows, CAPACITY), forked))
        if len(pairs) > 3:
            pairs.pop(int(draw.integers(len(pairs))))
        del cache, reference
        for pair in pairs:
            assert_equal(*pair)
        count_references(pool, [cache for cache, _ in pairs])
    assert len(pool._references) > 2


def test_complete_blocks_are_shared_until_a_row_writes():
    pool = new_pool(8)
    cache = PagedCache(pool, 2, 96)
    write(cache, 0, 0, np.arange(70.0))
    cache.copy(np.array([0]), np.array([1]), 0, 70)
    assert np.array_equal(cache.tables[0, :2], cache.tables[1, :2])
    assert cache.tables[0, 2] != cache.tables[1, 2]
    write(cache, 1, 40, np.arange(100.0, 104.0))
    assert cache.tables[0, 0] == cache.tables[1, 0]
    assert cache.tables[0, 1] != cache.tables[1, 1]
    assert [float(read(cache, row, 41)[0, 0, 0]) for row in (0, 1)] == [41.0, 101.0]
    assert float(read(cache, 1, 39)[0, 0, 0]) == 39.0


def test_a_fork_copies_no_block_before_it_writes():
    pool = new_pool(8)
    cache = PagedCache(pool, 2, 64)
    write(cache, 0, 0, np.arange(40.0))
    forked = cache.fork(np.array([0, 0, 0]), 80)
    assert (pool._references > 0).sum() == 2
    assert forked.tables.shape == (3, 3)
    write(forked, 1, 40, np.array([7.0]))
    assert [float(read(kept, row, 39)[0, 0, 0]) for kept, row in ((cache, 0), (forked, 1))] == [39.0, 39.0]
    del forked
    pool.take(0)
    assert (pool._references > 0).sum() == 2
