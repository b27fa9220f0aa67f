"""A study notes which model answered, by the sum of its files."""

import hashlib
from pathlib import Path

from models.tiny_pretrained import save_tiny
from trialogue_lab.ledger.runs.provenance import record_models
from trialogue_lab.studies.constrained_law import cases
from trialogue_lab.studies.constrained_law.config import Config as LawConfig
from trialogue_lab.studies.test_cases.config import MeasuredModel
from trialogue_lab.studies.test_cases.learning import oracle_of


def test_studies_say_which_model_answered(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "model")
    known = "sha256 " + hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    for ask in (
        lambda: cases.case_of(LawConfig(model=str(folder)), "regex", 0),
        lambda: oracle_of(MeasuredModel(model=str(folder), layer=-1, layers=(-1,)), 0, tmp_path),
    ):
        for _ in range(2):  # the second is of a model that was loaded before
            with record_models() as models:
                ask()
            assert [model["files"] for model in models] == [known]
            assert models[0]["weights"]
