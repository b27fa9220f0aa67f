"""Class `Terms`, the settings of a request to an `OpenRun`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trialogue.oracles import Autoregressive
from trialogue.samplers.penalties import Penalties
from trialogue.samplers.prefix.batch import Stop
from trialogue.samplers.prefix.prompts import make_decoder, make_stop_condition
from trialogue.samplers.truncation import Truncated
from trialogue.verifiers.functions.function import VerifierLike


@dataclass(frozen=True)
class Terms:
    """Settings of a request other than its prompt and seed. The fields are arguments of `generate`.

    Args:
        verifier: The verifier (default: none).
        max_new_tokens: Maximum length of a completion (default: up to the capacity of the run).
        temperature: Sampling temperature (default: 1).
        top_p: Probability mass of the most probable tokens to keep (default: 1, all tokens).
        top_k: Number of most probable tokens to keep (default: all).
        min_p: Smallest probability to keep, relative to the most probable token (default: 0).
        stop: Strings that end a completion (default: none).
        stop_tokens: Tokens that end a completion and are not part of its text (default: only the end-of-sequence token
            of the model).
        penalties: Change of the model's distribution, to which temperature and truncation apply (default: none).
            Log-probabilities of samples are those of the unchanged model.
    """

    verifier: VerifierLike | None = None
    max_new_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    stop: tuple[str, ...] = ()
    stop_tokens: tuple[int, ...] = ()
    penalties: Penalties | None = None

    def truncated(self, oracle: Autoregressive) -> Truncated:
        """Return `oracle` with the temperature, top-k, top-p and min-p of these settings."""
        return Truncated(oracle, self.temperature, self.top_p, self.top_k, self.min_p)

    def stop_condition(self, oracle: Autoregressive) -> Stop | None:
        """Return a function that finds stop strings and stop tokens in a completion, or None if there are none.

        Args:
            oracle: The model.
        """
        conditions: list[str | Stop] = [*self.stop]
        if self.stop_tokens:
            conditions.append(self._ends_with_stop_token)
        return make_stop_condition(oracle, conditions) if conditions else None

    def _ends_with_stop_token(self, completion: Sequence[int]) -> bool:
        return bool(completion) and completion[-1] in self.stop_tokens

    def decoder(self, oracle: Autoregressive) -> Callable[[Sequence[int]], str] | None:
        """Return a function that converts the token ids of a finished completion to its text.

        Args:
            oracle: The model.

        Returns:
            The function, or None if the model has no tokenization.
        """
        decode = make_decoder(oracle, list(self.stop) or None)
        if decode is None or not self.stop_tokens:
            return decode
        return lambda ids: decode(ids[:-1] if self._ends_with_stop_token(ids) else ids)
