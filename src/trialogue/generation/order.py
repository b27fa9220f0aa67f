"""Records in the order in which their samples were asked for."""

from typing import Any

from trialogue.errors import InputError
from trialogue.generation.recording import Output
from trialogue.generation.sample_file import Key
from trialogue.generation.tries import Tries


class InOrder:
    """An `output` that is told of samples as they finish, and writes them in the order of prompts and samples.

    What waits behind an unfinished sample is not written: the output holds it until then. What an earlier run left must
    come before all that is missing: raises `InputError` where it does not.
    """

    def __init__(self, output: Output, tries: Tries) -> None:
        self._output, self._tries, self._waiting = output, tries, dict[Key, dict[str, Any]]()
        self._place, self._sample = 0, 0
        pending, there = tries.pending(), list(output.kept)
        why = None
        if there != sorted(there):
            why = "the samples that are there are in another order"
        elif there and pending and min(pending) < there[-1]:
            earlier = min(pending)[0] < there[-1][0]
            what = "more samples of an earlier prompt" if earlier else "samples that are missing"
            why = f"{what} would come behind later ones"
        if why is not None:
            raise InputError("ordered", True, f"{why}: leave it out, or begin anew with --force")

    def write(self, key: Key, record: dict[str, Any]) -> None:
        """Take the record of a sample, and write all those that nothing is missing before."""
        self._waiting[key] = record
        while self._place < len(self._tries.counts):
            following = (self._place, self._sample)
            if following in self._waiting:
                self._output.write(self._waiting[following])
                self._output.kept[following] = self._waiting.pop(following)
                self._output.held.pop(following, None)
            elif following not in self._output.kept:
                if not self._tries.finished(self._place):
                    return
                self._place, self._sample = self._place + 1, 0
                continue
            self._sample += 1
