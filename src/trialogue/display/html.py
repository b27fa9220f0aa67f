"""What HTML pages of results share: the environment of their templates, one style, and figures inside the page."""

import re

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def environment(package: str = "trialogue.display") -> Environment:
    """The environment of the templates of `package`, which may include `style.css`."""
    loader = ChoiceLoader([PackageLoader(package, "."), PackageLoader("trialogue.display", ".")])
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def prose(text: str) -> Markup:
    """Return `text` as HTML, with the words between backticks as code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


def embedded(svg: str, own: str) -> Markup:
    """The text of an SVG file as a part of a page, where ids begin with `own`: a page holds each id once."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r'\bid="', f'id="{own}-', body)
    body = re.sub(r'href="#', f'href="#{own}-', body)
    body = re.sub(r"url\(#", f"url(#{own}-", body)
    # matplotlib escapes every text it draws, so the SVG is markup and not somebody's input.
    return Markup(body)
