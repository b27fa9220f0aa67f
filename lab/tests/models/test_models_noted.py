"""Tests that studies record the hash of the model that they use."""

import hashlib
from pathlib import Path

from models.tiny_pretrained import save_tiny
from trialogue_lab.ledger.runs.provenance import record_models
from trialogue_lab.studies.constrained_law import cases
from trialogue_lab.studies.constrained_law.config import Config as ConstrainedConfig
from trialogue_lab.studies.test_cases.config import MeasuredModel
from trialogue_lab.studies.test_cases.learning import load_oracle


def test_studies_record_the_hash_of_their_model(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "model")
    expected = "sha256 " + hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    for load in (
        lambda: cases.load_question(ConstrainedConfig(model=str(folder)), "regex", 0),
        lambda: load_oracle(MeasuredModel(model=str(folder), layer=-1, layers=(-1,)), 0, tmp_path),
    ):
        for _ in range(2):  # the second call uses a model that is already loaded
            with record_models() as models:
                load()
            assert [model["files"] for model in models] == [expected]
            assert models[0]["weights"]
