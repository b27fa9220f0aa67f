"""Figure of the study."""

from trialogue_lab.studies.topic_pretrained.pages import FIGURES as EARLIER

FIGURES = tuple(figure for figure in EARLIER if figure.name == "often-together")
