"""What does it cost to draw exact samples under a constraint by rejection that learns from rejected attempts?

`AdaptiveRejection` (CARS, arXiv 2510.01902) rejects outputs that violate a constraint, and never draws a prefix again
that an earlier attempt found to be rejected. On random trees its output distribution is computed exactly, for the first
sample and for samples that start from the table of up to 40 earlier ones. The same is done for ASAp (grammar-aligned
decoding, arXiv 2405.21047), which masks rejected tokens and corrects later samples by what earlier ones have shown.

A chat model then answers two sets of questions. The first are the 16 questions of the study `constrained-law`, whose
restricted distribution is known. The second are 60 requests for JSON in ten schemas, with bounded fields (enums,
integers, booleans, patterns) and free strings. Model calls are counted with and without the calls on prefixes that the
run has already evaluated, and compared with masked decoding, with weighted outputs of masked decoding, and with
rejection that stops at the first rejected token. Every output has a budget of attempts, and outputs beyond the budget
are counted.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="CARS (arXiv 2510.01902) and grammar-aligned decoding (arXiv 2405.21047), abstracts and public code",
    kind="measure",
)
