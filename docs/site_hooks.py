"""Hook of MkDocs: links to files outside docs/ lead to the repository; in the repository itself, they are relative."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Replace links such as ``../examples/x.py`` by addresses."""
    up = re.escape("../" * (page.file.src_uri.count("/") + 1))
    return re.sub(rf"\]\({up}(?!\.\.)([^)]+)\)", rf"]({config.extra['repository']}/blob/main/\1)", markdown)
