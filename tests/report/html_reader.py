"""Parser of report pages for tests."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any


class Page(HTMLParser):
    """Elements, texts and embedded data of a page.

    Attributes:
        elements: (tag, attributes) of each element.
        texts: (tag of the parent, text) of each text node; a possible line break, ``wbr``, does not end one.
        data: the embedded JSON.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = ["html"]
        self._joins = False
        self.feed(source)
        scripts = [text for tag, text in self.texts if tag == "script"]
        self.data: Any = json.loads(scripts[0])
        self.script = scripts[1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "wbr":
            self._joins = True
            return
        self._joins = False
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._joins:
            tag, start = self.texts.pop()
            self.texts.append((tag, start + data))
        elif data.strip():
            self.texts.append((self._open[-1], data))
        self._joins = False

    def of(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of each element with this tag."""
        return [attributes for name, attributes in self.elements if name == tag]
