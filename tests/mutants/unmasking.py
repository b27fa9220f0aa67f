"""Faults of unmasking samplers and of their exact distributions.

Each fault replaces an attribute of a module or class. The comparison with the naive enumeration must detect it for
samplers of the named kind.
"""

import numpy as np
import torch

from trialogue import enumeration
from trialogue.samplers.chains.subsets import choose_members
from trialogue.samplers.cut import Cut
from trialogue.samplers.exact import checked_states, random_sizes, row_numbers
from trialogue.samplers.exact import unmasking_states as exact
from trialogue.samplers.truncation import temper
from trialogue.samplers.unmasking import (
    Canvas,
    Checked,
    Confidence,
    DrawThenSelect,
    Entropy,
    Factor,
    Margin,
    Permutation,
    RandomSizes,
    ReMDM,
    Schedule,
    Threshold,
    checked,
    constrained,
    contract,
    ordered,
    remasking,
)

select_positions = ordered._select
count_random, count_scheduled = RandomSizes.count, Schedule.count
run_plan, judge, add = ReMDM.plan, Checked._accepts, exact.Exploration.add
solve, distinct = checked_states.CheckedExploration.solve, checked._distinct
find_options, list_sequences = contract.Planned.options, exact.list_sequences
total_mass, receive = exact.total_mass, exact.Exploration._receive
before, after = constrained._Canvases._before, constrained._Canvases._after
restrict = constrained._Canvases._restrict
prescribed, reached = random_sizes._Prescribed.count, random_sizes.RandomSizePasses._states
begin = checked_states.RestartedExploration.__init__
number, follow = row_numbers.RowNumbers.number, remasking.Corrected._follow


def lowest_scores(state, scores, *rest):
    return select_positions(state, -scores, *rest)


def uniform_members(sets, sizes, choose):
    """Draw the first member of a subset uniformly among all that leave enough members."""
    return choose_members(
        sets, sizes, lambda weights, rows: choose(weights.clamp(min=0, max=0) + weights / 2, rows)
    )


def truncated_first(self, log_probs):
    return temper(Cut(top_p=self.top_p)(log_probs), self.temperature or 0.01)


def remainder_last(self, block, choose):
    return count_scheduled(self, block._replace(passes=self.passes - 1 - block.passes), choose)


def one_pass_late(self, block, choose):
    return count_random(self, block._replace(passes=(block.passes - 1).clamp_min(0)), choose)


def share_of_one_pass_more(self, passes):
    return 1 / (self.passes + 1 - passes).clamp_min(1).double()


def strict_threshold(self, block, choose):
    return ((block.scores > self.confidence) & block.masked).sum(1).clamp_min(1)


def factor_without_one(self, block, choose):
    scores = block.scores.masked_fill(~block.masked, -torch.inf).sort(dim=1, descending=True).values
    return ((torch.arange(scores.shape[1]) + 1) * (1 - scores) <= self.factor).sum(1).clamp_min(1)


def largest_confidence(self, state, conditionals, choose):
    """Select by the most probable token instead of the drawn one."""
    masked = state.masked & ordered.current_block(state, self.blocks)
    tokens = contract.Drawing(self.temperature, self.top_p or 1.0).draw(
        state.tokens, masked, conditionals, choose
    )
    scores = Confidence().scores(conditionals)
    selected = ordered._select(state, scores, self.size, self.ties, self.blocks, choose)
    return ordered._advance(state, tokens, selected, self.size, self.blocks)


def masked_prompt(self, state, conditionals, choose):
    return run_plan(self, state._replace(free=torch.ones_like(state.free)), conditionals, choose)


def never_masked(self, state, plan, conditionals):
    changing = plan.changing * state.masked
    return find_options(self, state, plan._replace(changing=changing), conditionals)


def shuffled_factors(options):
    rows, codes, factors = list_sequences(options)
    return rows, codes, factors[::-1]


def first_digit_highest(options, *rest):
    return total_mass(options[:, ::-1], *rest)


def one_position_more(self, block, choose):
    return prescribed(self, block, choose) + 1


def without_counting_the_pass(self, state, *rest):
    return reached(self, state._replace(passes=state.passes - 1), *rest)


def visited_once(self, nodes, masses):
    receive(self, nodes, np.minimum(masses, 0.1))


def first_word_only(self, rows):
    """Merge rows that agree in their first word, which is the first token."""
    return number(self, rows[:, :1])


def correct_the_first_only(self, state, *rest):
    after = follow(self, state, *rest)
    return after._replace(left=after.left.clamp(max=1))


def all_tokens(self, tokens, lengths, free, vocab_size):
    return judge(self, tokens, torch.full_like(lengths, tokens.shape[1]), free, vocab_size)


def never_the_last_rejection(self):
    self._last_rejections = self._rejections
    return solve(self)


def one_rejection_less(self):
    self._quota -= 1
    return solve(self)


def one_restart_less(self, *arguments):
    begin(self, *arguments)
    self._quota -= 1


def lengths_only(tokens, lengths, starts, vocab_size):
    """Judge texts of equal length as if they were equal."""
    return distinct(torch.zeros_like(tokens), lengths, starts, vocab_size)


def canvas_only(self, state, stage=0):
    """Merge states that differ in their numbers of passes."""
    canvas = Canvas(state.tokens, state.masked, state.masked, torch.zeros_like(state.passes))
    return add(self, canvas, stage)


def ignoring_revealed(move):
    """Return a move of the automaton that treats revealed tokens as masked."""

    def moved(self, states, site):
        masked, self._masked = self._masked, np.ones_like(self._masked)
        try:
            return move(self, states, site)
        finally:
            self._masked = masked

    return moved


def any_next_state(self, log_probs, found, rows, before, after, inside):
    return restrict(self, log_probs, found, rows, before, np.ones_like(after), inside)


def drawn_independently(self, drawing, tokens, selected, conditionals, choose):
    return drawing.draw(tokens, selected, conditionals, choose)


MUTANTS = [
    ("constrained", constrained._Canvases, "_before", ignoring_revealed(before)),
    ("constrained", constrained._Canvases, "_after", ignoring_revealed(after)),
    ("constrained", constrained._Canvases, "_restrict", any_next_state),
    ("constrained", constrained._Canvases, "draw", drawn_independently),
    ("ordered", ordered, "_select", lowest_scores),
    ("ordered", ordered, "current_block", lambda state, width: state.free),
    ("corrected", ordered, "choose_members", uniform_members),
    ("ordered", contract.Drawing, "distribution", truncated_first),
    ("ordered", Schedule, "count", remainder_last),
    ("ordered", RandomSizes, "count", one_pass_late),
    ("ordered", RandomSizes, "share", share_of_one_pass_more),
    ("ordered", Permutation, "scores", lambda self, x: -torch.tensor(self.positions).expand(len(x), -1)),
    ("scored", Entropy, "scores", lambda self, x: Confidence().scores(x)),
    ("scored", Margin, "scores", lambda self, x: Confidence().scores(x)),
    ("ordered", exact.Exploration, "add", canvas_only),
    ("ordered", enumeration._Tapes, "untaken", lambda self: (self._calls[:0], self._tapes[:0])),
    ("by-confidence", Threshold, "count", strict_threshold),
    ("by-confidence", Factor, "count", factor_without_one),
    ("draw-then-select", DrawThenSelect, "step", largest_confidence),
    ("remdm", ReMDM, "plan", masked_prompt),
    ("remdm", contract.Planned, "options", never_masked),
    ("checked", exact, "list_sequences", shuffled_factors),
    ("remdm", exact, "total_mass", first_digit_highest),
    ("ordered", random_sizes._Prescribed, "count", one_position_more),
    ("ordered", random_sizes.RandomSizePasses, "_states", without_counting_the_pass),
    ("ordered", row_numbers.RowNumbers, "number", first_word_only),
    ("corrected", remasking.Corrected, "_follow", correct_the_first_only),
    ("ordered", exact.Exploration, "_receive", visited_once),
    ("remdm", contract, "flip", lambda p, choose: p > 0.5),
    ("corrected", remasking, "_DRAWING", contract.Drawing(0.5, 1.0)),
    (
        "checked",
        Checked,
        "_accepts",
        lambda self, tokens, *rest: torch.ones_like(tokens[:, 0], dtype=torch.bool),
    ),
    ("checked", checked, "ends", lambda tokens, eos: torch.full_like(tokens[:, 0], tokens.shape[1])),
    ("checked", checked, "choose_members", lambda sets, sizes, choose: sets & (sizes > 0)[:, None]),
    ("checked-partial", Checked, "_accepts", all_tokens),
    ("checked-partial", checked_states.CheckedExploration, "solve", never_the_last_rejection),
    ("checked", checked_states.CheckedExploration, "solve", one_rejection_less),
    ("checked-partial", checked_states.RestartedExploration, "__init__", one_restart_less),
    ("checked", checked, "_distinct", lengths_only),
]
"""Kind of sampler, object, attribute and faulty replacement."""
