"""Build hook: the description on package indexes is README.md with absolute links.

Relative links and pictures work on the repository's pages, but not on an index.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "https://github.com/classgap/classgap"
PICTURES = "https://raw.githubusercontent.com/classgap/classgap"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?!https?:|#)([^)\s]+)\)")


def absolute_links(text: str, tag: str) -> str:
    """Return Markdown with its relative links and pictures at a tag of the repository.

    >>> absolute_links("[guide](docs/fix.md#the-rule) ![x](docs/x.png) [web](https://example.org)", "v1")
    ... # doctest: +NORMALIZE_WHITESPACE
    '[guide](https://github.com/classgap/classgap/blob/v1/docs/fix.md#the-rule)
     ![x](https://raw.githubusercontent.com/classgap/classgap/v1/docs/x.png) [web](https://example.org)'
    """

    def replace(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        start = f"{PICTURES}/{tag}" if mark else f"{REPOSITORY}/blob/{tag}"
        return f"{mark}[{absolute_links(label, tag)}]({start}/{target})"

    return LINK.sub(replace, text)


class ReadmeHook(MetadataHookInterface):
    """Sets ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description to the metadata of the project."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        tag = f"v{metadata['version']}"
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text, tag)}
