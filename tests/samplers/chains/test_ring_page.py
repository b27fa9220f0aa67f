"""The page about the ring: its code runs, and does what the page says."""

import re
from pathlib import Path

import pytest

from trialogue.errors import InputError

PAGE = Path(__file__).parents[3] / "docs" / "ring.md"


def test_what_the_page_says_is_so():
    demonstration, refusal = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(demonstration, names)
    # Six standard errors of 20 chains, and of 256, are less than these.
    assert names["right_by_steps"] == pytest.approx(0.4621, abs=0.06)
    assert names["right_in_bulk"] == pytest.approx(0.4621, abs=0.015)
    assert abs(names["wrong"]) < 0.06
    with pytest.raises(
        InputError, match=r"chain=Metropolis\(order='sweep'\): not ergodic .* classes that it never"
    ):
        exec(refusal, names)
