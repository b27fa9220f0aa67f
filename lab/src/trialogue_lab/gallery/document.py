"""The gallery page, a self-contained HTML file with five interactive examples."""

import json
from pathlib import Path

from markupsafe import Markup

from trialogue import __version__
from trialogue.display.html import make_environment
from trialogue_lab.gallery import domain_walls, reveal_orders, rule_at_the_end, two_cliques, waking_layers
from trialogue_lab.gallery.embedding import round_floats


def render_gallery(results: str | Path | None = None, seed: int = 0) -> str:
    """Return an HTML page with five interactive examples of samplers and models.

    Four examples are sampled by this call, which takes about fifteen seconds on one core. The fifth shows
    measurements of the study `interaction-order`. The page loads no other files. Equal arguments give equal pages.

    Args:
        results: Folder of study results (default: the folders of `search_folders`).
        seed: Random seed of the sampled examples (default: 0).

    Raises:
        InputError: If the study `interaction-order` has no finished result.
    """
    # This scene comes first because it is the only one that can fail.
    layers = waking_layers.make_scene(results)
    scenes = round_floats(
        {
            "walks": rule_at_the_end.make_scene(seed),
            "walls": domain_walls.make_scene(seed),
            "cliques": two_cliques.make_scene(seed),
            "reveals": reveal_orders.make_scene(seed),
            "layers": layers,
        }
    )
    pages = make_environment("trialogue_lab.gallery")
    pages.filters["percent"] = _format_percent
    recorded = json.dumps(scenes, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return pages.get_template("page/page.html.jinja").render(
        **scenes,
        seed=seed,
        tempting=rule_at_the_end.TEMPTING,
        copies=two_cliques.COPIES,
        field=two_cliques.FIELD,
        coupling=reveal_orders.COUPLING,
        jointly=max(level["chains"][0]["distance"][-1] for level in scenes["cliques"]["levels"]),
        rounds=two_cliques.STEPS,
        version=__version__,
        # "</" would end the script element.
        recorded=Markup(recorded.replace("</", "<\\/")),
    )


def _format_percent(share: float) -> str:
    if share == 0:
        return "0\u00a0%"
    return (
        "less than 0.1\u00a0%" if share < 0.0005 else f"{100 * share:.{1 if share < 0.0995 else 0}f}\u00a0%"
    )
