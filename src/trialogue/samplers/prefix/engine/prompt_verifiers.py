"""Conversion of the argument `verifier` of `generate` to one verifier for each prompt."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Target, Verifier
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier, CachedVerifierPerRow
from trialogue.samplers.prefix.output.sample import Parser
from trialogue.verifiers.combination import Anything, list_factors
from trialogue.verifiers.functions.function import VerifierLike, as_verifier
from trialogue.verifiers.functions.tolerant import ErrorLog, reject_on_error

OnError = Literal["raise", "reject"]


class PromptVerifiers(NamedTuple):
    """The verifier of each prompt of a run. Equal verifiers are stored once.

    Attributes:
        verifiers: The distinct verifiers.
        of_prompt: Index (prompts,) int64 of the verifier of each prompt.
        parsers: For each prompt, the function that converts an accepted text to a Python value, or None. Empty if no
            verifier defines one.
        raised: For each verifier, the record of its errors. Empty if errors end the run.
    """

    verifiers: Sequence[Verifier]
    of_prompt: Tensor
    parsers: Sequence[Parser | None]
    raised: Sequence[ErrorLog]

    @classmethod
    def from_arguments(
        cls,
        verifier: VerifierLike | Sequence[VerifierLike | None] | None,
        prompts: int,
        strings: Sequence[str],
        on_error: OnError,
    ) -> "PromptVerifiers":
        """Create the verifiers from the arguments of `generate`.

        Args:
            verifier: One verifier or function for all prompts, or a list with one or None for each prompt.
            prompts: Number of prompts.
            strings: Stop strings. Verifiers of text judge the text before them.
            on_error: What to do if a verifier or target raises: "raise" ends the run, "reject" rejects the prefix.

        Returns:
            The verifiers.

        Raises:
            InputError: If the list does not have one entry for each prompt, or an entry is not a verifier.
        """
        given = _list_verifiers(verifier, prompts)
        different = {id(one): one for one in given}
        verifiers, raised = [], []
        for one in different.values():
            if on_error == "reject":
                raised.append(ErrorLog())
            named = None if one is None else _convert_named(one, verifier)
            verifiers.append(make_row_verifier(named, strings, raised[-1] if raised else None))
        places = {name: place for place, name in enumerate(different)}
        of_prompt = torch.tensor([places[id(one)] for one in given], dtype=torch.int64)
        parsers = [verifiers[place].parser for place in of_prompt.tolist()]
        return cls(verifiers, of_prompt, parsers if any(parsers) else (), raised)

    @property
    def layers(self) -> tuple[int, ...]:
        """Blocks whose hidden states the verifiers read."""
        return tuple(dict.fromkeys(layer for one in self.verifiers for layer in one.layers))

    @property
    def has_targets(self) -> bool:
        """Whether a factor of a verifier is a `Target`."""
        return any(isinstance(factor, Target) for one in self.verifiers for factor in list_factors(one))

    def for_batch(self, batch: Batch) -> CachedVerifier:
        """Return a `CachedVerifier` that evaluates each row of `batch` with the verifier of its prompt."""
        if len(self.verifiers) == 1:
            return CachedVerifier(self.verifiers[0], batch)
        return CachedVerifierPerRow(dict(enumerate(self.verifiers)), batch)


def make_row_verifier(one: VerifierLike | None, strings: Sequence[str], raised: ErrorLog | None) -> Verifier:
    """Convert an argument `verifier` of `generate` to the verifier of the rows of a batch.

    Args:
        one: A verifier or function, or None to accept everything.
        strings: Stop strings. Text is judged up to the first of them.
        raised: Record of errors. If given, an error of the verifier is stored in it and rejects the sequence.

    Returns:
        The verifier.
    """
    verifier = Anything() if one is None else as_verifier(one)
    verifier = verifier.up_to(strings) if strings else verifier
    return verifier if raised is None else reject_on_error(verifier, raised)


def _convert_named(one: VerifierLike, given: object) -> Verifier:
    """Convert `one` to a verifier. If `given` is a list of verifiers, error messages state the index of `one` in it."""
    try:
        return as_verifier(one)
    except InputError as error:
        if not isinstance(given, list | tuple):
            raise
        place = next(place for place, other in enumerate(given) if other is one)
        raise InputError(f"verifier[{place}]", error.value, error.hint) from None


def _list_verifiers(
    verifier: VerifierLike | Sequence[VerifierLike | None] | None, prompts: int
) -> list[VerifierLike | None]:
    if not isinstance(verifier, list | tuple):
        return [verifier] * prompts  # type: ignore[list-item]
    if len(verifier) != prompts:
        hint = f"give one for each of the {prompts} prompts (None accepts everything), or one for all"
        raise InputError("verifier", f"{len(verifier)} verifiers", hint)
    return list(verifier)
