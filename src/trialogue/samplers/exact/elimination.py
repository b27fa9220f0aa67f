"""Exact solution of Markov chains that end at a random time, by elimination without subtraction.

The method of Grassmann, Taksar and Heyman (1985) adds positive numbers only, so small probabilities keep
their relative precision even if the chain rarely ends.

The cost is linear in the number of states for trees, and for chains whose states only link to their
ancestors. For general graphs it is up to cubic, in pure Python: 1,500 states with 3 random edges each take
seconds for `visits` and over a minute for `visited`.
"""

import math
from collections.abc import Iterable
from functools import cached_property
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from trialogue.errors import InputError

Array = NDArray[np.float64]

SMALLEST = 1e-300
"""Smallest supported probability of leaving a set of states. Double precision ends at about 1e-308."""
_MASS_ERROR = 1e-9
_LOST_DIGITS = 1e-6


def require_distribution(name: str, probabilities: Iterable[float], elsewhere: float = 0.0) -> None:
    """Raise `InputError` unless probabilities are non-negative and sum to one within 1e-9.

    Args:
        name: Name of the quantity for error messages.
        probabilities: Probabilities.
        elsewhere: A further probability (default: 0).
    """
    numbers = [*probabilities, elsewhere]
    total = math.fsum(numbers) if all(map(math.isfinite, numbers)) else math.nan
    if not abs(total - 1) <= _MASS_ERROR:
        hint = "use a smaller problem, because double precision does not suffice for a sum of one"
        raise InputError(name, total, hint)
    if min(numbers) < 0:
        hint = "use a smaller problem, because double precision does not suffice for positive probabilities"
        raise InputError(name, min(numbers), hint)


class AbsorbingChain:
    """A Markov chain on n states that starts in the first state and ends at a random time.

    In each state, the chain ends with a given probability and otherwise moves to another state.

    Args:
        transitions: Sparse matrix (n, n) of transition probabilities.
        ends: Probability (n,) of ending in each state. Rows of `transitions` and `ends` together sum to one.

    Attributes:
        ending: Whether the chain can end after it has visited each state, (n,).
    """

    def __init__(self, transitions: csr_array, ends: Array) -> None:
        self._transitions = csr_array(transitions)
        self.ending = _can_end(self._transitions, ends)
        self._lost = self._transitions @ (~self.ending).astype(np.float64)
        self._leaving = ends + self._lost

    @cached_property
    def _factors(self) -> "_Factors":
        return _Factors(self._transitions, self._leaving, self.ending)

    @cached_property
    def visits(self) -> Array:
        """Expected number of visits (n,) of each state, including the start, before the chain ends.

        The entry is 0 for states from which the chain cannot end.

        Raises:
            InputError: If the probability of ending before returning to the start is below 1e-300.
        """
        return self._factors.visits() if self.ending[0] else np.zeros(len(self.ending))

    @property
    def never_ends(self) -> float:
        """Probability that the chain reaches a state from which it cannot end."""
        return float(self.visits @ self._lost) if self.ending[0] else 1.0

    @cached_property
    def visited(self) -> Array:
        """Probability (n,) that the chain visits each state, 0 for states from which it cannot end."""
        visited = np.zeros(len(self.ending))
        if self.ending[0]:
            own = self._factors.own_visits()
            states = list(own)
            visited[states] = self.visits[states] / np.array(list(own.values()))
        return visited

    def weighted_visits(self, weighted: csr_array) -> Array:
        """Return the expected sum of importance weights over all visits of each state.

        A weight starts at one and is multiplied by a factor at each transition.

        Args:
            weighted: Matrix (n, n) of the transition probabilities, each times the mean factor of the
                transition.

        Returns:
            Expected weights (n,), 0 for states from which the chain cannot end.

        Raises:
            InputError: If the expected weights are infinite or lose their precision.
        """
        if not self.ending[0]:
            return np.zeros(len(self.ending))
        return _Factors(csr_array(weighted), self._leaving, self.ending, self._factors).visits()


def stationary_distribution(transitions: csr_array) -> Array:
    """Return the stationary distribution of a Markov chain on the states that its first state reaches.

    Args:
        transitions: Sparse matrix (n, n) of transition probabilities. The first state must be reachable from every
            state that it reaches.

    Returns:
        Probabilities (n,), 0 for states that are not reached.

    Raises:
        InputError: If a state returns to the first state with a probability below 1e-300.
    """
    transitions = csr_array(transitions)
    size = transitions.shape[0]
    visits = _Factors(transitions, np.zeros(size), np.ones(size, dtype=np.bool_)).visits(between=True)
    stationary: Array = visits / math.fsum(visits)
    require_distribution("transitions", stationary.tolist())
    return stationary


class _Factors:
    """Result of eliminating the states of a chain one by one: a row and a column for each eliminated state."""

    def __init__(
        self,
        transitions: csr_array,
        ends: Array,
        ending: NDArray[np.bool_],
        unweighted: "_Factors | None" = None,
    ) -> None:
        indptr, indices = transitions.indptr.tolist(), transitions.indices.tolist()
        data, ended, inside = transitions.data.tolist(), ends.tolist(), ending.tolist()
        self._size = len(inside)
        self._order: list[int] = unweighted._order if unweighted else _postorder(indptr, indices, inside)
        # For each state, the normalised rest of its row, the probabilities of leaving and of staying, and the rest of
        # its column, which contains states that are eliminated later.
        self._rows: dict[int, dict[int, float]] = {}
        self._leaving: dict[int, float] = {}
        self._staying: dict[int, float] = {}
        self._columns: dict[int, list[tuple[int, float]]] = {state: [] for state in self._order}
        rank: dict[int, int] = {}
        end_shares: dict[int, float] = {}
        for place, state in enumerate(self._order):
            row: dict[int, float] = {}
            for edge in range(indptr[state], indptr[state + 1]):
                if inside[indices[edge]] and (data[edge] > 0 or unweighted):
                    row[indices[edge]] = row.get(indices[edge], 0.0) + data[edge]
            end = ended[state]
            passed = [rank[target] for target in row if target in rank]
            heapify(passed)
            while passed:
                target = self._order[heappop(passed)]
                entering = row.pop(target)
                self._columns[target].append((state, entering))
                end += entering * end_shares[target]
                for further, share in self._rows[target].items():
                    if further in row:
                        row[further] += entering * share
                    else:
                        row[further] = entering * share
                        if further in rank:
                            heappush(passed, rank[further])
            staying = row.pop(state, 0.0)
            leaving = math.fsum((*row.values(), end))
            if unweighted:
                leaving = _weighted_leaving(unweighted, state, staying)
            if place < len(self._order) - 1:
                _require_leaving(leaving)
                self._rows[state] = {further: entry / leaving for further, entry in row.items()}
                end_shares[state] = end / leaving
            self._leaving[state], self._staying[state], rank[state] = leaving, staying, place

    def visits(self, between: bool = False) -> Array:
        """Return the expected number of visits (n,) of each state if the chain starts in the first one.

        With `between`, only visits before the chain returns to the first state count.
        """
        visits = [0.0] * self._size
        start = self._order[-1]
        if not between:
            _require_leaving(self._leaving[start])
        visits[start] = 1.0 if between else 1 / self._leaving[start]
        for state in reversed(self._order[:-1]):
            entered = sum(visits[before] * entry for before, entry in self._columns[state])
            visits[state] = entered / self._leaving[state]
        if not all(map(math.isfinite, visits)):
            raise InputError(
                "visits",
                math.inf,
                "use a smaller problem, because the expected visits exceed double precision",
            )
        return np.array(visits)

    def own_visits(self) -> dict[int, float]:
        """Return the expected number of visits of each state if the chain starts in it (Takahashi's equations)."""
        known: dict[tuple[int, int], float] = {}
        rank = {state: place for place, state in enumerate(self._order)}

        def visits(first: int, second: int) -> float:
            """Return the expected number of visits of state `second` if the chain starts in `first`.

            The recursion runs over states that are eliminated later.
            """
            if (first, second) in known:
                return known[first, second]
            if rank[first] < rank[second]:
                found = math.fsum(
                    share * visits(further, second) for further, share in self._rows[first].items()
                )
            else:
                entered = (
                    entry * (visits(first, before) if first != second else through(first, before))
                    for before, entry in self._columns[second]
                )
                found = math.fsum((float(first == second), *entered)) / self._leaving[second]
            known[first, second] = found
            return found

        def through(first: int, second: int) -> float:
            return math.fsum(
                share * visits(further, second) for further, share in self._rows.get(first, {}).items()
            )

        return {state: visits(state, state) for state in reversed(self._order)}


def _require_leaving(leaving: float) -> None:
    if not leaving >= SMALLEST:
        hint = f"use a chain that ends with a probability of at least {SMALLEST:g}, the limit of double precision"
        raise InputError("probability", leaving, hint)


def _weighted_leaving(unweighted: _Factors, state: int, staying: float) -> float:
    """Return one minus the expected weight of a return to `state` that avoids all states eliminated later."""
    difference = unweighted._staying[state] - staying
    leaving = unweighted._leaving[state] + difference
    if difference and not leaving > _LOST_DIGITS * abs(difference):
        hint = "use weights that do not grow in loops, because expected weights are infinite or lose their precision"
        raise InputError("log_weight", leaving, hint)
    return leaving


def _postorder(indptr: list[int], indices: list[int], inside: list[bool]) -> list[int]:
    """List the states that can be reached from the first one, in depth-first post-order."""
    order, seen = [], [False] * len(inside)
    seen[0] = True
    path, places = [0], [indptr[0]]
    while path:
        state, place = path[-1], places[-1]
        if place == indptr[state + 1]:
            order.append(state)
            path.pop()
            places.pop()
            continue
        places[-1] += 1
        target = indices[place]
        if inside[target] and not seen[target]:
            seen[target] = True
            path.append(target)
            places.append(indptr[target])
    return order


def _can_end(transitions: csr_array, ends: Array) -> NDArray[np.bool_]:
    """Return whether the chain, started in each state (n,), can end with positive probability."""
    size, ending = transitions.shape[0], np.flatnonzero(ends)
    reverse = transitions.T.tocoo()
    rows = np.concatenate((reverse.row, np.full(len(ending), size)))
    columns = np.concatenate((reverse.col, ending))
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(size + 1, size + 1))
    reached = breadth_first_order(graph, size, return_predecessors=False)
    found = np.zeros(size + 1, dtype=np.bool_)
    found[reached] = True
    return found[:-1]
