"""Topics of a corpus by latent Dirichlet allocation, and which words are of which."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from trialogue.errors import InputError
from trialogue.extras import from_extra
from trialogue.randomness import numpy_generator, seed_of
from trialogue.validation import Count, validated


@dataclass(frozen=True, eq=False)
class Assignment:
    """Words and the topics that they are of."""

    words: NDArray[np.int64]
    """(k,) the words that are of some topic"""
    topics: NDArray[np.bool_]
    """(k, T) whether a word is of a topic"""

    @cached_property
    def same(self) -> NDArray[np.bool_]:
        """(k, k) pairs of different words that share a topic."""
        shared = (self.topics.astype(np.float32) @ self.topics.T.astype(np.float32)) > 0
        np.fill_diagonal(shared, False)
        return shared

    @cached_property
    def different(self) -> NDArray[np.bool_]:
        """(k, k) pairs of words that share no topic."""
        return (self.topics.astype(np.float32) @ self.topics.T.astype(np.float32)) == 0


@validated
def fitted_topics(
    counts: csr_matrix,
    topics: Annotated[int, Ge(2)],
    *,
    passes: Count = 10,
    seed: int = 0,
    report: Callable[[str], object] = lambda _: None,
) -> NDArray[np.float64]:
    """The distributions of words (topics, words) of a latent Dirichlet allocation of `counts` (passages, words), rows
    sum to 1.

    By online variational Bayes (Hoffman, Blei and Bach 2010) as scikit-learn has it, with its symmetric priors 1/T, in
    `passes` over passages in an order drawn by `seed`; the topic of the most words comes first. `report` is told what
    is done. Raises `InputError` where there are fewer passages than topics.
    """
    if counts.shape[0] < topics:
        hint = f"the corpus has {counts.shape[0]} documents: ask for fewer topics, or give a longer text"
        raise InputError("topics", topics, hint)
    order = numpy_generator(seed, "order of passages").permutation(counts.shape[0])
    model = from_extra("sklearn.decomposition", "topics").LatentDirichletAllocation(
        topics,
        learning_method="online",
        total_samples=counts.shape[0],
        random_state=seed_of(seed, "topics") % 2**32,
    )
    for done in range(passes):
        report(f"topics: pass {done + 1} of {passes}")
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", RuntimeWarning
            )  # exponentials of topics that no word is of underflow
            model.partial_fit(counts[order])
    weights = model.components_[np.argsort(-model.components_.sum(1), kind="stable")]
    return weights / weights.sum(1, keepdims=True)


def assigned(distributions: NDArray[np.float64], words: int, *, single: bool) -> Assignment:
    """The `words` likeliest words of each topic of `distributions` (topics, words); of these, `single` keeps the words
    of one.

    Raises `InputError` where topics have fewer words.
    """
    if not 1 <= words <= distributions.shape[1]:
        hint = f"the text has {distributions.shape[1]} words that are single tokens: use from 2 to that many"
        raise InputError("words", words, hint)
    members = np.zeros(distributions.shape, dtype=np.bool_)
    np.put_along_axis(members, np.argsort(-distributions, axis=1, kind="stable")[:, :words], True, axis=1)
    often = members.sum(0)
    kept = np.flatnonzero(often == 1 if single else often >= 1)
    return Assignment(kept, members.T[kept])
