"""Test that public functions check the arguments whose types state a limit."""

import pytest

import trialogue_lab.analysis
import trialogue_lab.data
import trialogue_lab.models
import trialogue_lab.theory
import trialogue_lab.training
from limited_arguments import Limited, check_refusal, limited_functions

PACKAGES = (
    trialogue_lab.analysis,
    trialogue_lab.data,
    trialogue_lab.models,
    trialogue_lab.theory,
    trialogue_lab.training,
)
LIMITED = [limited for package in PACKAGES for limited in limited_functions(package)]


def test_functions_with_limited_arguments_are_found() -> None:
    assert len(LIMITED) > 150


@pytest.mark.parametrize("limited", LIMITED, ids=lambda limited: limited.name)
def test_error_for_an_invalid_value_names_the_argument(limited: Limited) -> None:
    check_refusal(limited)
