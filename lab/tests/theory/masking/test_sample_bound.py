"""Tests of Theorem 4.1.4 and its lemmas: published constants and the two bounds that compose the theorem."""

import math

import pytest

from trialogue_lab.theory.masking.sample_bound import (
    empirical_distribution_bound,
    mask_average_bound,
    mask_average_deviation,
    sample_bound,
)

SIZES = {"sites": 2, "vocab_size": 2, "samples": 10**6, "masks": 10**6}
ARGUMENTS = SIZES | {"tensorization": 2.0, "loss": 0.0, "beta": 0.05, "cells": 100, "eps": 0.1, "delta": 0.1}


def test_sample_bounds_agree_with_published_values():
    assert sample_bound(**ARGUMENTS).bound == pytest.approx(1.283, abs=6e-4)
    small = {**ARGUMENTS, "sites": 1, "samples": 10**4, "masks": 10**4, "tensorization": 1.0}
    assert sample_bound(**small).bound == pytest.approx(1.437, abs=6e-4)
    empirical = empirical_distribution_bound(sites=3, vocab_size=2, samples=1000, delta=0.3)
    assert empirical == pytest.approx(0.327, abs=6e-4)


def test_bounds_that_overflow_are_infinite():
    many = {"sites": 400, "vocab_size": 2, "samples": 10, "delta": 0.1}
    assert empirical_distribution_bound(**many) == pytest.approx(math.exp(600 * math.log(2)) / 4, rel=1e-9)
    assert empirical_distribution_bound(**{**many, "sites": 800}) == math.inf
    assert mask_average_bound(**{**many, "sites": 800}, masks=1, beta=0.1) == math.inf
    assert sample_bound(**{**ARGUMENTS, "sites": 800}).bound == math.inf


def test_theorem_is_the_sum_of_two_bounds_at_delta_over_two():
    bound = sample_bound(**ARGUMENTS)
    shared = {key: ARGUMENTS[key] for key in ("sites", "vocab_size", "samples")}
    assert bound.samples_term == pytest.approx(empirical_distribution_bound(**shared, delta=0.05))
    one_cell = mask_average_bound(**shared, masks=ARGUMENTS["masks"], beta=ARGUMENTS["beta"], delta=0.05)
    term = sample_bound(**{**ARGUMENTS, "cells": 1}).masks_term
    assert term * math.log(1 / ARGUMENTS["beta"]) == pytest.approx(one_cell)


def test_theorem_contains_the_bound_for_all_parameters_at_half_delta():
    """The loss, Corollary 4.3.2 and the tensorization constant compose the root of Theorem 4.1.4."""
    names = ("sites", "vocab_size", "samples", "masks", "beta", "cells", "eps")
    uniform = mask_average_bound(**{key: ARGUMENTS[key] for key in names}, delta=ARGUMENTS["delta"] / 2)
    bound = sample_bound(**ARGUMENTS | {"loss": 0.3})
    root = math.sqrt(ARGUMENTS["tensorization"] / 2 * (0.3 + uniform))
    assert bound.bound == pytest.approx(root + bound.samples_term)
    one = mask_average_bound(**{key: ARGUMENTS[key] for key in names[:5]}, delta=ARGUMENTS["delta"] / 200)
    assert uniform == pytest.approx(one + ARGUMENTS["eps"])  # a union bound over 100 cells


def test_lemma_at_half_delta_gives_the_corollary():
    """Use eps and t of the proof, with 2^(N - 1) instead of the published 2^(3 N - 1) under the root of eps."""
    sites, samples, masks, beta, delta = 2, 1000, 10**5, 0.1, 0.1
    eps = math.sqrt(2 ** (sites - 1) * 2**sites / (masks * delta))
    t = math.sqrt(math.log(4 / delta) * samples / 2) * math.log(1 / beta)
    given = {"sites": sites, "vocab_size": 2, "samples": samples, "masks": masks, "beta": beta}
    found = mask_average_deviation(**given, eps=eps, t=t)
    assert found.distance == pytest.approx(mask_average_bound(**given, delta=delta))
    assert found.probability == pytest.approx(1 - delta)
    printed = math.sqrt(2 ** (3 * sites - 1) * 2**sites / (masks * delta))
    assert mask_average_deviation(**given, eps=printed, t=t).distance > 2 * found.distance
