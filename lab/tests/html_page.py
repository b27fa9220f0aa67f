"""A parser of HTML pages for tests."""

from html.parser import HTMLParser

_WITHOUT_END = frozenset({"meta", "br", "link", "img", "input"})


class Page(HTMLParser):
    """The ids, references and words of a page. Tags must be nested correctly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []
        assert {place[1:] for place in self.references if place.startswith("#")} <= set(self.ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _WITHOUT_END:
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        links = ("href", "src", "xlink:href", "action", "data")
        self.references += [value or "" for name, value in attrs if name in links]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
