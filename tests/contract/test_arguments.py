"""Requirements on every public function whose types state limits of its arguments."""

import pytest

from limited_arguments import check_refusal, limited_functions
from trialogue import data, inspection, models, samplers, training, verifiers

PACKAGES = (data, inspection, models, samplers, training, verifiers)
LIMITED = [limited for package in PACKAGES for limited in limited_functions(package)]


def test_functions_with_limits_are_found():
    assert len(LIMITED) > 80


@pytest.mark.parametrize("limited", LIMITED, ids=lambda limited: limited.name)
def test_a_value_of_a_wrong_type_is_rejected_with_the_name_of_the_argument(limited):
    check_refusal(limited)
