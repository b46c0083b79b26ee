"""A report page taken apart, for tests."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any


class Page(HTMLParser):
    """Elements in order, texts of cells, and the data island.

    Attributes:
        elements: (tag, attributes) of every element.
        texts: (tag of the element it is in, text) of every text.
        data: the data island.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = ["html"]
        self.feed(source)
        scripts = [text for tag, text in self.texts if tag == "script"]
        self.data: Any = json.loads(scripts[0])
        self.script = scripts[1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self._open[-1], data))

    def of(self, tag: str) -> list[dict[str, str]]:
        """Attributes of every element of this kind."""
        return [attributes for name, attributes in self.elements if name == tag]
