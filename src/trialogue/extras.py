"""Import packages that only an extra of trialogue installs."""

from importlib import import_module
from typing import Any

from trialogue.errors import InputError


def from_extra(module: str, extra: str) -> Any:
    """Import and return `module`, which `pip install 'trialogue[extra]'` installs.

    Raises:
        InputError: If the module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        hint = f"it is not installed: pip install 'trialogue[{extra}]'"
        raise InputError("package", module.partition(".")[0], hint) from error
