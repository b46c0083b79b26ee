"""A section of a Hugging Face model card: accuracy per class, and how it was measured."""

from __future__ import annotations

import html
import re

from classgap._version import __version__
from classgap.audit.audit import Audit
from classgap.report.formatting import format_count, format_level, format_percent, format_percent_interval

BEGIN, END = "<!-- classgap: begin -->", "<!-- classgap: end -->"
GROUPS = ("easy", "medium", "hard")


def card_section(audit: Audit, *, data: str, model: str, method: str) -> str:
    """Return the section in Markdown, between two comments so that it can be replaced.

    Args:
        audit: Audit of the test predictions.
        data: Name of the dataset.
        model: Name of the network.
        method: Name of the training method.
    """
    level = format_level(audit.settings.confidence_level)
    seen = sorted((each for each in audit.classes if each.accuracy is not None), key=lambda each: each.accuracy or 0)
    unseen = [each.name for each in audit.classes if each.accuracy is None]
    lines = [
        BEGIN,
        "## Accuracy per class",
        "",
        "| test samples | accuracy | interval |",
        "|---|---|---|",
        _row("all", audit.overall.accuracy, audit.overall.interval),
        *(
            _row(f"{name} third of the classes", audit.groups[name].accuracy, audit.groups[name].interval)
            for name in GROUPS
            if name in audit.groups
        ),
        "",
        "| class | accuracy | interval | test samples | most often confused with |",
        "|---|---|---|---|---|",
    ]
    for each in seen:
        confused = each.confusions[0] if each.confusions else None
        other = "" if confused is None else f"{_escape(confused.name)} ({format_percent(confused.rate)} %)"
        cells = (
            _escape(each.name),
            f"{format_percent(each.accuracy)} %",
            f"{format_percent_interval(each.interval)} %",
            format_count(each.support),
            other,
        )
        lines.append(f"| {' | '.join(cells)} |")
    if unseen:
        lines += ["", f"Without test samples: {', '.join(map(_escape, unseen))}."]
    lines += [
        "",
        f"Measured once, after training, on the {format_count(audit.overall.n_samples)} test samples of "
        f"`{_code(data)}`, with `{_code(model)}` trained by `{_code(method)}`. The accuracy of a class is the fraction "
        f"of its test samples that are predicted correctly, with a {level} interval. The thirds are the classes ranked "
        f"by these accuracies; a third's accuracy is the mean over its classes. Computed with classgap {__version__}.",
        END,
    ]
    return "\n".join(lines) + "\n"


def insert_section(card: str, section: str) -> str:
    """Replace the section in a card, or append it.

    >>> insert_section("# Model\\n", f"{BEGIN}\\nnew\\n{END}\\n").splitlines()[0]
    '# Model'
    >>> insert_section(f"a\\n{BEGIN}\\nold\\n{END}\\nb\\n", f"{BEGIN}\\nnew\\n{END}\\n").splitlines()
    ['a', '<!-- classgap: begin -->', 'new', '<!-- classgap: end -->', 'b']
    """
    place = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}\\n?", flags=re.DOTALL)
    if place.search(card):
        return place.sub(lambda match: section, card, count=1)
    return f"{card.rstrip()}\n\n{section}" if card.strip() else section


def _row(name: str, accuracy: float | None, interval: object) -> str:
    return f"| {name} | {format_percent(accuracy)} % | {format_percent_interval(interval)} % |"  # type: ignore[arg-type]


def _escape(text: str) -> str:
    """Escape a name for a table of a page that renders Markdown and HTML.

    >>> _escape("a|b <i>*c*</i>")
    'a\\\\|b &lt;i&gt;\\\\*c\\\\*&lt;/i&gt;'
    """
    plain = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\\\`*_\[\]|~])", r"\\\1", plain)


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").replace("|", "\\|").split())
