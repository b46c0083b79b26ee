"""Hooks of MkDocs: pages that are files of the repository, and links to files outside docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from markdown.extensions.toc import slugify_unicode
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}


def on_config(config: Any) -> Any:
    """Keep letters such as λ in the anchors of headings, as the repository does: links work in both."""
    config.mdx_configs["toc"]["slugify"] = slugify_unicode
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages at the root of the repository to the site."""
    for name, source in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Replace links such as ``../examples/x.py`` by addresses; in the repository itself, they are relative."""
    up = re.escape("../" * (page.file.src_uri.count("/") + 1))
    return re.sub(rf"\]\({up}(?!\.\.)([^)]+)\)", rf"]({config.extra['repository']}/blob/main/\1)", markdown)
