"""CPU time per token that a constraint adds to decoding, compared with logits processors of llguidance.

SmolLM2-135M-Instruct first writes outputs for the tasks of `constrained.py`. Then a model that costs nothing gives each
of their tokens a probability near 1, so that all contenders repeat the same tokens in batches of 1, 4 and 16 rows. The
cost of `MaskedDecoding` is its CPU time minus that of `Ancestral`, which samples the same tokens without the
constraint. It includes masks, their application, the total probability of the allowed tokens, normalisation, and the
verdicts on complete outputs. The cost of a logits processor is the CPU time of its calls. Grammars are compiled outside
of the measured time, and no contender reuses the masks of an earlier round. The contenders alternate.

    trialogue models pull smollm2
    python benchmarks/mask_cost.py
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from llguidance import LLMatcher
from llguidance.hf import from_tokenizer
from llguidance.torch import allocate_token_bitmask, apply_token_bitmask_inplace, fill_next_token_bitmask
from rich.console import Console
from rich.table import Table
from torch import Tensor

from constrained import NEW_TOKENS, SEED, TASKS, Guidance, Task
from record import Record
from trialogue import generate
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import PrefixOracle, Verifier
from trialogue.randomness import generator
from trialogue.samplers import Ancestral, MaskedDecoding

OURS, BATCHES = "trialogue", (1, 4, 16)
LOG_SCALE = 20.0


class TorchGuidance:
    """Logits processor with the functions of `llguidance.torch`, as integrations of llguidance use them."""

    def __init__(self, start: LLMatcher, rows: int, width: int) -> None:
        self._matchers, self._width = [start.deep_copy() for _ in range(rows)], width
        self._mask: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if self._mask is None:
            self._mask = allocate_token_bitmask(*scores.shape)
        for row, matcher in enumerate(self._matchers):
            if input_ids.shape[1] > self._width and not matcher.is_stopped():
                matcher.consume_token(int(input_ids[row, -1]))
            fill_next_token_bitmask(matcher, self._mask, row)
        apply_token_bitmask_inplace(scores, self._mask)
        return scores


class Replay(PrefixOracle):
    """Model that repeats given completions. The prompt of completion i is the token i.

    Args:
        completions: Token ids of each completion.
        vocab_size: Number of tokens.
        eos: End-of-sequence token.
    """

    prompts_go_on = True

    def __init__(self, completions: list[list[int]], vocab_size: int, eos: int) -> None:
        self._completions, self.vocab_size, self.eos = completions, vocab_size, eos
        noise = torch.randn(vocab_size, generator=generator(SEED, "mask_cost"))
        self.scores = noise.log_softmax(0) - LOG_SCALE

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        log_probs = self.scores.repeat(len(lengths), 1)
        for row, (prompt, length) in enumerate(zip(tokens[:, 0].tolist(), lengths.tolist(), strict=True)):
            rest = self._completions[prompt][length - 1 :]
            log_probs[row, rest[0] if rest else self.eos] = 0.0
        return log_probs


def write_outputs(task: Task, rows: int) -> tuple[Tokenization, list[list[int]]]:
    """Return outputs of the model for a task, as token ids with the end-of-sequence token."""
    oracle = load_pretrained("smollm2")
    tokenizer = oracle.tokenization.tokenizer
    chats = [[{"role": "user", "content": prompt}] for prompt in task.prompts]
    texts = tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=False)
    samples = generate(
        oracle,
        [oracle.tokenization.encode(text) for text in texts],
        sampler=MaskedDecoding(),
        verifier=task.verifier(oracle.tokenization).within_limit(),
        num_samples=-(-rows // len(texts)),
        max_new_tokens=NEW_TOKENS,
        seed=SEED,
    )
    return oracle.tokenization, [list(tokens) for tokens in samples.completions()][:rows]


class Contenders:
    """Functions that repeat the outputs of a task, and return CPU seconds."""

    def __init__(self, tokenization: Tokenization, task: Task, completions: list[list[int]]) -> None:
        self._tokenization, self._task, self._completions = tokenization, task, completions
        self._replay = Replay(completions, tokenization.vocab_size, tokenization.eos)
        self._tokenizer = from_tokenizer(tokenization.tokenizer)

    def seconds_per_token(self, batch: int) -> dict[str, float]:
        """Return the CPU seconds that the constraint adds to each token in one round, by contender."""
        plain = self._decode(batch, Ancestral(), None)
        masked = self._decode(batch, MaskedDecoding(), self._verifier())
        limited = self._decode(batch, MaskedDecoding(), self._verifier().within_limit())
        return {
            OURS: masked - plain,
            "trialogue, within the limit": limited - plain,
            "llguidance.torch": self._process(batch, TorchGuidance),
            "llguidance, NumPy": self._process(batch, Guidance),
        }

    def _verifier(self) -> Any:
        return self._task.verifier(self._tokenization)

    def _decode(self, batch: int, sampler: Any, verifier: Verifier | None) -> float:
        prompts = [[row] for row in range(len(self._completions))]
        seconds = 0.0
        for first in range(0, len(prompts), batch):
            began = time.process_time()
            samples = generate(
                self._replay,
                prompts[first : first + batch],
                sampler=sampler,
                verifier=verifier,
                max_new_tokens=NEW_TOKENS,
                batch_size=batch,
                seed=SEED,
            )
            seconds += time.process_time() - began
            expected = self._completions[first : first + batch]
            found = samples.completions()
            assert [list(tokens[: len(due)]) for tokens, due in zip(found, expected, strict=True)] == expected
        return seconds / sum(map(len, self._completions))

    def _process(self, batch: int, kind: Callable[..., Any]) -> float:
        seconds, count, start = 0.0, 0, LLMatcher(self._tokenizer, self._task.grammar)
        for first in range(0, len(self._completions), batch):
            rows = self._completions[first : first + batch]
            input_ids = torch.full((len(rows), 1 + NEW_TOKENS), self._tokenization.eos)
            for row, tokens in enumerate(rows):
                input_ids[row, 1 : 1 + len(tokens)] = torch.tensor(tokens)
            processor = kind(start, len(rows), 1)
            for length in range(max(map(len, rows))):
                scores = self._replay.scores.repeat(len(rows), 1)
                began = time.process_time()
                processor(input_ids[:, : 1 + length], scores)
                seconds += time.process_time() - began
                # Transformers keeps finished rows in the batch, and their masks cost about as much as others.
                count += len(rows)
        return seconds / count


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the rows that the documentation quotes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    record, console = Record("mask_cost"), Console(width=120)
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    for name, task in TASKS.items():
        tokenization, completions = write_outputs(task, max(BATCHES))
        contenders = Contenders(tokenization, task, completions)
        for batch in BATCHES:
            contenders.seconds_per_token(batch)  # warm-up
            rounds = [contenders.seconds_per_token(batch) for _ in range(arguments.rounds)]
            for contender in rounds[0]:
                micros = 1e6 * statistics.median(one[contender] for one in rounds)
                found[batch, contender].append(micros)
                record.add(contender, micros, what="CPU µs per token", task=name, batch=batch)
    table = Table("CPU µs per token", *(f"batch {batch}" for batch in BATCHES))
    for contender in dict.fromkeys(contender for _, contender in found):
        means = [statistics.mean(found[batch, contender]) for batch in BATCHES]
        for batch, mean in zip(BATCHES, means, strict=True):
            record.add(contender, mean, what="mean CPU µs per token", batch=batch)
        table.add_row(contender, *(f"{mean:.0f}" for mean in means))
    console.print(table)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
