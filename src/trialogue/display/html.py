"""Jinja templates and embedded figures of HTML pages."""

import re

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def make_environment(package: str = "trialogue.display") -> Environment:
    """Return a Jinja environment that loads templates from a Python package.

    The templates may also include the files of `trialogue.display`, for example `style.css`.

    Args:
        package: Name of the package that contains the templates (default: "trialogue.display").
    """
    loader = ChoiceLoader([PackageLoader(package, "."), PackageLoader("trialogue.display", ".")])
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def text_to_html(text: str) -> Markup:
    """Convert text to HTML. Special characters are escaped, and text between backticks is formatted as code.

    Args:
        text: Plain text.
    """
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


def embed_svg(svg: str, own: str) -> Markup:
    """Convert the content of an SVG file to markup for an HTML page.

    Args:
        svg: Content of the SVG file.
        own: Prefix that is added to all ids of the SVG, so that they are unique on the page.

    Returns:
        The `<svg>` element.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r'\bid="', f'id="{own}-', body)
    body = re.sub(r'href="#', f'href="#{own}-', body)
    body = re.sub(r"url\(#", f"url(#{own}-", body)
    # matplotlib escapes all text in an SVG, so that the markup is safe.
    return Markup(body)
