"""The documentation page about the ring: its code runs and gives the stated results."""

import re
from pathlib import Path

import pytest

from refusals import expect_error

PAGE = Path(__file__).parents[3] / "docs" / "ring.md"


def test_the_code_of_the_page_gives_the_stated_results():
    demonstration, refusal = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(demonstration, names)
    # The tolerances exceed six standard errors of 20 and of 256 chains.
    assert names["right_by_steps"] == pytest.approx(0.4621, abs=0.06)
    assert names["right_in_bulk"] == pytest.approx(0.4621, abs=0.015)
    assert abs(names["wrong"]) < 0.06
    expect_error(
        r"chain=Metropolis\(order='sweep'\): the chain is not ergodic .* closed classes", exec, refusal, names
    )
