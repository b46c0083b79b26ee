"""One self-contained HTML file of an audit or of comparisons: no request leaves it, and class names stay text."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from classgap._atomic_write import atomic_write_text
from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.report import formatting as wording
from classgap.report.audit_page import audit_page
from classgap.report.causes import cause_evidence
from classgap.report.details import island
from classgap.report.diff_page import diff_page
from classgap.report.notes import note_name

if TYPE_CHECKING:
    import jinja2


def write_html(content: Audit | AuditDiff | Sequence[AuditDiff], path: str | os.PathLike[str]) -> None:
    """Write ``content`` as one HTML file.

    Args:
        content: an audit, a comparison, or several comparisons with the same first side.
        path: the file, which is replaced whole or not at all.
    """
    atomic_write_text(path, render_html(content))


def render_html(content: Audit | AuditDiff | Sequence[AuditDiff]) -> str:
    """The page as text."""
    pages = _environment()
    if isinstance(content, Audit):
        template, variables = "audit.html", audit_page(content)
    else:
        template, variables = "diff.html", diff_page([content] if isinstance(content, AuditDiff) else content)
    script = _part(pages, "page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return pages.get_template(template).render(
        **variables,
        data=island(variables["data_sets"]),
        style=Markup(_part(pages, "page.css")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


def _environment() -> jinja2.Environment:
    import jinja2

    from classgap._version import __version__

    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("classgap.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words = (
        cause_evidence, note_name,
        wording.cause_name, wording.count, wording.method_names, wording.minus_signs, wording.number, wording.percent,
        wording.percent_range, wording.points, wording.points_range,
    )  # fmt: skip
    pages.filters["unbroken"] = lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%")  # no line starts with a % sign
    pages.globals |= {word.__name__: word for word in words} | {"version": __version__}
    return pages


def _part(pages: jinja2.Environment, name: str) -> str:
    assert pages.loader is not None
    return pages.loader.get_source(pages, name)[0]
