"""Settings of the study: the preset `night` of `topic-pretrained` with other seeds, for two of its models."""

from dataclasses import replace

from trialogue_lab.studies.topic_pretrained import config as pretrained
from trialogue_lab.studies.topic_pretrained.config import Name

MODELS: tuple[Name, ...] = ("minilm", "gemma3")

PRESETS = {
    "smoke": replace(pretrained.PRESETS["smoke"], models=MODELS, words=(9, 10), read=40),
    # The stored pilot has the estimates of the same statistics in the pilot of `topic-pretrained`.
    "pilot": replace(pretrained.PRESETS["pilot"], models=MODELS),
    "default": replace(pretrained.PRESETS["night"], seeds=tuple(range(300, 320)), models=MODELS),
}
