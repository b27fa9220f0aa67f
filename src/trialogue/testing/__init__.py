"""The laws that chains and models are held to, each by one call in pytest.

What breaks a law raises `AssertionError` that says which, and where. Nothing here needs pytest.
"""

from trialogue.testing.chains import check_chain
from trialogue.testing.models import check_energy, check_joint, check_masked

__all__ = ["check_chain", "check_energy", "check_joint", "check_masked"]
