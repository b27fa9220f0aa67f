"""Value functions: tables, and what is wrong with one."""

import math

import pytest

from inference.reference_laws import expected_value, largest_difference, restricted
from trialogue.errors import InputError
from trialogue.inference import TableValues, ValueGuided, generate, values
from trialogue.inference.laws import exact_law
from trialogue.testing import check_verifier
from trialogue.testing.trees import TREES, VIABLE

TREE = VIABLE[1]


def table(tree, value) -> TableValues:
    return TableValues({prefix: value(prefix) for prefix in tree.nodes()})


def test_a_table_is_a_function_and_a_verifier_of_prefixes():
    written = table(TREE, TREE.value)
    assert written((0, 1)) == TREE.value((0, 1))
    asked = [(), (1,), (0, 1, 1)]
    assert values(written, TREE.table(), asked).tolist() == [TREE.value(prefix) for prefix in asked]
    check_verifier(written, TREE.table())
    law = exact_law(ValueGuided(), TREE.table(), table(TREE, expected_value(TREE, TREE.value)))
    assert largest_difference(law.probabilities, restricted(TREE, TREE.value)) < 1e-12


def test_what_cannot_occur_needs_no_value():
    sparse = TREES[6]
    assert generate(sparse.table(), walk=ValueGuided(), verifier=table(sparse, sparse.value)).accepted.all()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({}, r"table={}: give a dict"),
        ({(0,): -1.0}, r"the value of \(0,\)=-1.0: use a finite number of at least 0"),
        ({(0,): math.nan}, r"the value of \(0,\)=nan: use a finite number of at least 0"),
        ({(0,): True}, r"the value of \(0,\)=True"),
        ({(0.5,): 1.0}, r"table=0.5: name a prefix by a tuple of token ids"),
        ({"0": 1.0}, r"table='0': name a prefix by a tuple of token ids"),
    ],
)
def test_a_wrong_table_is_one_line(written, told):
    with pytest.raises(InputError, match=told):
        TableValues(written)


def test_a_missing_prefix_is_named():
    written = TableValues({(): 1.0, (0,): 1.0})
    with pytest.raises(InputError, match=r"prefix=\(1,\): none of the 2 values is of this prefix"):
        generate(TREE.table(), walk=ValueGuided(), verifier=written)
    with pytest.raises(InputError, match=r"prefix=\(0, 1\)"):
        written((0, 1))
