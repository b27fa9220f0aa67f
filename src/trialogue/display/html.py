"""Templates, style and embedded figures of HTML pages."""

import re

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def environment(package: str = "trialogue.display") -> Environment:
    """Return the Jinja environment for the templates of `package`, which may include `style.css`."""
    loader = ChoiceLoader([PackageLoader(package, "."), PackageLoader("trialogue.display", ".")])
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def prose(text: str) -> Markup:
    """Return `text` as HTML, in which text between backticks is formatted as code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


def embedded(svg: str, own: str) -> Markup:
    """Return an SVG as part of an HTML page.

    Args:
        svg: Content of the SVG file.
        own: Prefix that makes the ids of the SVG unique on the page.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r'\bid="', f'id="{own}-', body)
    body = re.sub(r'href="#', f'href="#{own}-', body)
    body = re.sub(r"url\(#", f"url(#{own}-", body)
    # matplotlib escapes all text in an SVG, so that the markup is safe.
    return Markup(body)
