"""The contracts of the package as checks: hold a walk, a verifier or an oracle of your own to them in one call.

    from trialogue.testing import check_walk

    def test_my_walk():
        check_walk(MyWalk())

A check raises `AssertionError` that says what is wrong.
"""

from trialogue.testing.oracles import check_oracle
from trialogue.testing.verifiers import check_verifier
from trialogue.testing.walks import check_walk

__all__ = ["check_oracle", "check_verifier", "check_walk"]
