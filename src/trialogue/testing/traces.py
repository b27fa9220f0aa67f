"""What sequences a trace of moves leads to, in plain Python."""

from collections.abc import Sequence

from trialogue.samplers import Trace
from trialogue.testing.trees import Prefix


def replayed(trace: Trace, prompts: Sequence[Prefix], members: int) -> list[Prefix]:
    """The first row of each sample's group after all moves; the moves of one step happen at once."""
    groups = [[prompt] * members for prompt in prompts]
    columns = (trace.step, trace.sample, trace.member, trace.length, trace.source, trace.kept, trace.token)
    now, before = -1, [list(group) for group in groups]
    for step, sample, member, length, source, kept, token in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        if step != now:
            now, before = step, [list(group) for group in groups]
        held = len(before[sample][member])
        if held != length:
            raise AssertionError(
                f"step {step}: row {member} of sample {sample} holds {held} tokens, not {length}"
            )
        groups[sample][member] = before[sample][source][:kept] + ((token,) if token >= 0 else ())
    return [group[0] for group in groups]
