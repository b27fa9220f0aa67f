"""The verifiers that a run is given, one for all prompts or one for each, as what judges its rows."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Verifier
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.judge import Judge, JudgeOfRules
from trialogue.samplers.prefix.output.sample import Parser
from trialogue.verifiers.combination import Anything
from trialogue.verifiers.functions.function import VerifierLike, as_verifier
from trialogue.verifiers.functions.tolerant import Raised, tolerant

OnError = Literal["raise", "reject"]


class PromptVerifiers(NamedTuple):
    """The different `verifiers` of a run, and which of them each prompt is under (prompts,) int64.

    `parsers` are by prompt, `raised`, by verifier, are told what it raises, where that rejects.
    """

    verifiers: Sequence[Verifier]
    of_prompt: Tensor
    parsers: Sequence[Parser | None]
    raised: Sequence[Raised]

    @classmethod
    def of(
        cls,
        verifier: VerifierLike | Sequence[VerifierLike | None] | None,
        prompts: int,
        strings: Sequence[str],
        on_error: OnError,
    ) -> "PromptVerifiers":
        """Those that the user gave as `verifier`, for so many `prompts`, of texts up to the stop `strings`.

        Raises `InputError` for a list that is not one of verifiers, or None, for each prompt.
        """
        given = _each(verifier, prompts)
        different = {id(one): one for one in given}
        verifiers, raised = [], []
        for one in different.values():
            if on_error == "reject":
                raised.append(Raised())
            named = None if one is None else _named(one, verifier)
            verifiers.append(judging(named, strings, raised[-1] if raised else None))
        places = {name: place for place, name in enumerate(different)}
        of_prompt = torch.tensor([places[id(one)] for one in given], dtype=torch.int64)
        parsers = [verifiers[place].parser for place in of_prompt.tolist()]
        return cls(verifiers, of_prompt, parsers if any(parsers) else (), raised)

    @property
    def layers(self) -> tuple[int, ...]:
        """The blocks whose hidden states verifiers read."""
        return tuple(dict.fromkeys(layer for one in self.verifiers for layer in one.layers))

    def judge(self, batch: Batch) -> Judge:
        """What is asked about the rows of `batch`."""
        if len(self.verifiers) == 1:
            return Judge(self.verifiers[0], batch)
        return JudgeOfRules(dict(enumerate(self.verifiers)), batch)


def judging(one: VerifierLike | None, strings: Sequence[str], raised: Raised | None) -> Verifier:
    """`one` as what judges texts up to the stop `strings`, or, where it is None, accepts all.

    Where `raised` is to be told what it raises, that rejects.
    """
    verifier = Anything() if one is None else as_verifier(one)
    verifier = verifier.up_to(strings) if strings else verifier
    return verifier if raised is None else tolerant(verifier, raised)


def _named(one: VerifierLike, given: object) -> Verifier:
    """`one` as a verifier; an error names its place, where it is of a list."""
    try:
        return as_verifier(one)
    except InputError as error:
        if not isinstance(given, list | tuple):
            raise
        place = next(place for place, other in enumerate(given) if other is one)
        raise InputError(f"verifier[{place}]", error.value, error.hint) from None


def _each(
    verifier: VerifierLike | Sequence[VerifierLike | None] | None, prompts: int
) -> list[VerifierLike | None]:
    if not isinstance(verifier, list | tuple):
        return [verifier] * prompts  # type: ignore[list-item]
    if len(verifier) != prompts:
        hint = f"give one for each of the {prompts} prompts (None where all is accepted), or one for all"
        raise InputError("verifier", f"{len(verifier)} verifiers", hint)
    return list(verifier)
