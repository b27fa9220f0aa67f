"""The page: one HTML file that asks for nothing from anywhere, the same bytes each time."""

import json
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trialogue import __version__
from trialogue_lab.gallery import domain_walls, rule_at_the_end, two_cliques, waking_layers
from trialogue_lab.gallery.embedding import rounded

SCRIPTS = ("stage.js", "walks.js", "walls.js", "cliques.js", "layers.js", "start.js")


def render_gallery(results: str | Path | None = None, seed: int = 0) -> str:
    """The page of four scenes as text: three recorded here with `seed`, and one from the rows below `results`.

    Takes some fifteen seconds of one core. Raises `InputError` where `results` lacks the study that the last scene
    is about.
    """
    # What can fail comes first.
    layers = waking_layers.scene(results)
    scenes = rounded(
        {
            "walks": rule_at_the_end.scene(seed),
            "walls": domain_walls.scene(seed),
            "cliques": two_cliques.scene(seed),
            "layers": layers,
        }
    )
    environment = Environment(
        loader=PackageLoader("trialogue_lab.gallery", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["percent"] = _percent
    recorded = json.dumps(scenes, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return environment.get_template("page.html.jinja").render(
        **scenes,
        seed=seed,
        tempting=rule_at_the_end.TEMPTING,
        copies=two_cliques.COPIES,
        field=two_cliques.FIELD,
        jointly=max(level["chains"][0]["distance"][-1] for level in scenes["cliques"]["levels"]),
        rounds=two_cliques.STEPS,
        version=__version__,
        style=Markup(_text("style.css")),
        scripts=Markup("\n".join(_text(name) for name in SCRIPTS)),
        # Within a script element only "</" could end it.
        recorded=Markup(recorded.replace("</", "<\\/")),
    )


def _text(name: str) -> str:
    return files("trialogue_lab.gallery").joinpath("page", name).read_text(encoding="utf-8")


def _percent(share: float) -> str:
    if share == 0:
        return "0\u00a0%"
    return (
        "less than 0.1\u00a0%" if share < 0.0005 else f"{100 * share:.{1 if share < 0.0995 else 0}f}\u00a0%"
    )
