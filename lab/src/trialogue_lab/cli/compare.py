"""Comparison of two results of one study, for `trialogue compare`."""

from collections.abc import Sequence
from pathlib import Path

from trialogue.errors import InputError
from trialogue_lab import studies


def compare_results(names: Sequence[str], folder: Path | None, every: bool = False) -> None:
    """Print the differences between two results of one study: configs, tables and verdicts.

    Args:
        names: The two results, as for `find_result`.
        folder: Folder of results. None for the default folders.
        every: Also print what is equal in both results (default: False).
    """
    from trialogue.display.terminal import console
    from trialogue_lab.ledger import find_result
    from trialogue_lab.ledger.pages import comparison
    from trialogue_lab.ledger.pages.comparison_screen import print_comparison

    if len(names) != 2:
        raise InputError("result", list(names), "use exactly two results of one study")
    first, second = (find_result(name, folder) for name in names)
    if first.folder == second.folder:
        raise InputError("result", names[1], "is the same result as the first: use another one")
    compared = comparison.compare(studies.find(first.study), first, second)
    print_comparison(console(), compared, first, second, every=every)
