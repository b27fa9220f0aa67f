"""Settings of the study: those of the preset `night` of `topic-pretrained`, with other draws and two of its models."""

from dataclasses import replace

from trialogue.studies.topic_pretrained import config as pretrained
from trialogue.studies.topic_pretrained.config import Name

MODELS: tuple[Name, ...] = ("minilm", "gemma3")

PRESETS = {
    "smoke": replace(pretrained.PRESETS["smoke"], models=MODELS),
    # Draws of MiniLM take seconds, those of Gemma minutes.
    "pilot": replace(pretrained.PRESETS["pilot"], seeds=(110, 111), models=("minilm",)),
    "default": replace(pretrained.PRESETS["night"], seeds=tuple(range(300, 320)), models=MODELS),
}
