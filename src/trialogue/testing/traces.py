"""Reconstruction of sequences from the recorded moves of a run, in plain Python."""

from collections.abc import Sequence

from trialogue.samplers import Trace
from trialogue.testing.trees import Prefix


def replay(trace: Trace, prompts: Sequence[Prefix], members: int) -> list[Prefix]:
    """Apply the recorded moves of a sampling run to its prompts, and return the resulting sequences.

    A move sets a row (sequence) to the first tokens of a row of the same sample, followed by at most one new
    token. All moves of a step are applied simultaneously.

    Args:
        trace: Moves of a run.
        prompts: Prompt of each sample, as token ids.
        members: Number of rows per sample.

    Returns:
        First row of each sample after the last step.

    Raises:
        AssertionError: If the recorded length of a row differs from its actual length.
    """
    groups = [[prompt] * members for prompt in prompts]
    columns = (trace.step, trace.sample, trace.member, trace.length, trace.source, trace.kept, trace.token)
    current_step, before = -1, [list(group) for group in groups]
    for step, sample, member, length, source, kept, token in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        if step != current_step:
            current_step, before = step, [list(group) for group in groups]
        held = len(before[sample][member])
        if held != length:
            raise AssertionError(
                f"step {step}: row {member} of sample {sample} holds {held} tokens instead of {length}"
            )
        groups[sample][member] = before[sample][source][:kept] + ((token,) if token >= 0 else ())
    return [group[0] for group in groups]
