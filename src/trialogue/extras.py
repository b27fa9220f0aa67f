"""Import of packages that are installed with an extra of trialogue."""

from importlib import import_module
from typing import Any

from trialogue.errors import InputError


def from_extra(module: str, extra: str) -> Any:
    """Import the module `module`, which is installed with `pip install 'trialogue[extra]'`.

    Raises:
        InputError: If the module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        hint = f"it is not installed: pip install 'trialogue[{extra}]'"
        raise InputError("package", module.partition(".")[0], hint) from error
