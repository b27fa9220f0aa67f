"""What is the cost of exact sampling under a constraint, by rejection sampling that learns from rejected attempts?

`AdaptiveRejection` (CARS, arXiv 2510.01902) rejects outputs that violate a constraint. It stores the rejected prefixes
in a table, and never samples them again. On random trees, its output distribution is computed exactly. This is done for
the first sample, and for samples that start from the table of up to 40 earlier ones. It is also done for
grammar-aligned decoding (arXiv 2405.21047), which masks rejected tokens and uses earlier samples to correct the
distribution of later ones.

A chat model then answers two sets of prompts. The first are the 16 questions of the study `constrained-law`, for which
the model's distribution given the constraint is known. The second are 60 requests for JSON in ten schemas, with bounded
fields (enums, integers, booleans, patterns) and free strings. Model calls are counted with and without calls on
prefixes that the run has already evaluated. They are compared with masked decoding, with weighted outputs of masked
decoding, and with rejection sampling that stops at the first rejected token. Every output has a maximum number of
attempts, and outputs that exceed it are counted.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="CARS (arXiv 2510.01902) and grammar-aligned decoding (arXiv 2405.21047), abstracts and public code",
    kind="measure",
)
