"""Render an audit, comparisons or a fix as one self-contained HTML file that makes no requests."""

from __future__ import annotations

import base64
import datetime
import hashlib
import os
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from classgap._atomic_write import atomic_write_text
from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.audit.history import History
from classgap.remedies.results import FixResult
from classgap.report import display_names, formatting
from classgap.report.causes import cause_evidence
from classgap.report.details import island
from classgap.report.html.audit_page import audit_page
from classgap.report.html.diff_page import diff_page
from classgap.report.html.fix_page import fix_page
from classgap.report.html.history_page import history_page
from classgap.report.html.provenance import Provenance
from classgap.report.html.reproduction_page import reproduction_page
from classgap.report.notes import note_name
from classgap.report.thumbnails import SamplesByNumber
from classgap.reproduce.results import RecipeResult

if TYPE_CHECKING:
    import jinja2


Content = Audit | AuditDiff | Sequence[AuditDiff] | FixResult | History | RecipeResult


def write_html(
    content: Content,
    path: str | os.PathLike[str],
    *,
    thumbnails: SamplesByNumber | None = None,
    date: datetime.date | None = None,
    sources: Sequence[str | os.PathLike[str]] = (),
    command: str = "",
) -> None:
    """Write ``content`` as one HTML file.

    Args:
        content: an audit, a comparison, several comparisons that share their first side, a fix, a history, or a
            reproduced table or figure.
        path: destination, replaced atomically.
        thumbnails: test samples by number, of which an audit's page then shows misclassified ones. A string is a text;
            a path, an image of Pillow, an array or a tensor is a picture. Datasets of ``(image, label)`` or
            ``{"image": …}`` work too. They add at most 1 MB.
        date: day shown on the page; by default that of ``SOURCE_DATE_EPOCH`` if the environment has it, else today.
        sources: files shown as the page's sources; by default those that an audit was read from.
        command: command shown as the one that made the page.

    >>> from classgap.audit import Audit
    >>> audit = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=[0, 0, 1, 1], class_names=["cat", "dog"])
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_html(audit, Path(folder) / "report.html")
    ...     "dog" in (Path(folder) / "report.html").read_text(encoding="utf-8")
    True
    """
    atomic_write_text(path, render_html(content, thumbnails=thumbnails, date=date, sources=sources, command=command))


def render_html(
    content: Content,
    *,
    thumbnails: SamplesByNumber | None = None,
    date: datetime.date | None = None,
    sources: Sequence[str | os.PathLike[str]] = (),
    command: str = "",
) -> str:
    """Return the page of ``content``, as for :func:`write_html`.

    Raises:
        ValueError: if no thumbnail can be read, or ``content`` is not an audit and cannot show any.

    >>> from classgap.audit import Audit
    >>> audit = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=[0, 0, 1, 1], class_names=["cat", "dog"])
    >>> render_html(audit).startswith("<!doctype html>")
    True
    """
    if thumbnails is not None and not isinstance(content, Audit):
        raise ValueError(f"thumbnails are supported for an Audit only, got content of type {type(content).__name__}.")
    if not sources and isinstance(content, Audit) and content.source is not None:
        sources = (content.source.predictions,)
    pages = _environment()
    if isinstance(content, Audit):
        template, variables = "audit.html", audit_page(content, thumbnails)
    elif isinstance(content, FixResult):
        template, variables = "fix.html", fix_page(content)
    elif isinstance(content, History):
        template, variables = "history.html", history_page(content)
    elif isinstance(content, RecipeResult):
        template, variables = "reproduction.html", reproduction_page(content)
    else:
        template, variables = "diff.html", diff_page([content] if isinstance(content, AuditDiff) else content)
    script = _source(pages, "page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return pages.get_template(template).render(
        **variables,
        data=island(variables["data_sets"]),
        style=Markup(_source(pages, "chart.css") + _source(pages, "page.css")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        provenance=Provenance.from_arguments(date, sources, command),
    )


@cache  # compiling the templates takes longer than filling in a small page
def _environment() -> jinja2.Environment:
    import jinja2

    from classgap._version import __version__

    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("classgap.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    functions = (
        cause_evidence,
        note_name,
        display_names.cause_name,
        display_names.method_names,
        formatting.format_count,
        formatting.format_percent,
        formatting.format_percent_interval,
        formatting.format_points,
        formatting.format_points_interval,
        formatting.use_minus_signs,
    )
    pages.filters["unbroken"] = _join_units
    pages.filters["breakable"] = _break_name
    pages.globals |= {function.__name__: function for function in functions} | {"version": __version__}
    return pages


def _join_units(text: str) -> str:
    """Replace the space before a unit with a no-break space."""
    return re.sub(" (?=%|points)", "\N{NO-BREAK SPACE}", text)


def _break_name(name: str) -> Markup:
    """Allow line breaks between the parts of a name."""
    return Markup("<wbr>").join(formatting.word_parts(name))


def _source(pages: jinja2.Environment, name: str) -> str:
    assert pages.loader is not None
    return pages.loader.get_source(pages, name)[0]
