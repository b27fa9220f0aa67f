"""Tests that batches of documents agree with committed results."""

import hashlib

from trialogue.data import TopicModel
from trialogue.data.topics.model import Documents
from trialogue_lab.data.batch_draw import sample_document_batch


def test_document_batches_agree_with_committed_results() -> None:
    """Compare digests of the documents of the topic studies."""

    def digest(documents: Documents) -> str:
        return hashlib.blake2b(documents.tokens.numpy().tobytes(), digest_size=8).hexdigest()

    dirichlet, restricted = TopicModel(4, 3, concentration=0.2), TopicModel(4, 3, 2)
    assert digest(sample_document_batch(dirichlet, 30, (8, 12), 7)) == "0907a7380b3abdfd"
    assert digest(sample_document_batch(restricted, 1, 200, 7)) == "0a63784052aa2c1d"
