"""A gate as JUnit XML and as Markdown, the formats of continuous integration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from classgap._atomic_write import atomic_write, atomic_write_text, name_in_errors
from classgap.audit.gate_results import GateResult
from classgap.report.formatting import escape_markdown, format_count, printable
from classgap.report.gate_text import (
    GROUP_HEADERS,
    gate_headline,
    group_row,
    level_sentence,
    power_sentence,
    power_warnings,
    rule_sentence,
    rule_title,
    violation_headers,
    violation_row,
)
from classgap.report.match_text import match_sentences

MAX_ROWS = 20


def write_junit(result: GateResult, path: str | os.PathLike[str]) -> None:
    """Write one test case per rule as JUnit XML, atomically.

    Args:
        result: the gate to write.
        path: destination.

    >>> from classgap.audit import Audit, gate
    >>> targets = [0] * 40 + [1] * 40
    >>> audit = Audit.from_predictions(predictions=targets, targets=targets)
    >>> result = gate(audit, audit, max_class_drop=3)
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_junit(result, Path(folder) / "gate.xml")
    ...     'failures="0"' in (Path(folder) / "gate.xml").read_text(encoding="utf-8")
    True
    """
    counts = {"tests": len(result.rules), "failures": len(result.broken), "errors": 0, "skipped": 0}
    attributes = {name: str(value) for name, value in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "classgap gate", **attributes, "time": "0"})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "classgap gate", **attributes, "time": "0"})
    for rule in result.rules:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": "gate", "name": printable(rule_title(rule)), "time": "0"}
        )
        sentence = printable(rule_sentence(rule))
        if rule.passed:
            ElementTree.SubElement(case, "system-out").text = sentence
            continue
        failure = ElementTree.SubElement(case, "failure", {"message": sentence, "type": rule.rule})
        rows = [", ".join(violation_row(rule, violation)) for violation in rule.violations]
        headers = [", ".join(violation_headers(rule))] if rows else []
        failure.text = "\n".join([sentence, *headers, *map(printable, rows)])
    ElementTree.SubElement(suite, "system-out").text = printable(
        " ".join(
            [
                gate_headline(result),
                *power_warnings(result),
                *match_sentences(result),
                power_sentence(result),
                level_sentence(result),
            ]
        )
    )
    ElementTree.indent(root)
    with atomic_write(path) as file:
        ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
        file.write(b"\n")


def write_markdown(result: GateResult, path: str | os.PathLike[str]) -> None:
    """Write the gate as Markdown; append to a file that exists, as ``$GITHUB_STEP_SUMMARY`` requires.

    A new file is written atomically. Text is appended in a single write, and the existing content is kept.

    Args:
        result: the gate to write.
        path: destination.

    >>> from classgap.audit import Audit, gate
    >>> targets = [0] * 40 + [1] * 40
    >>> audit = Audit.from_predictions(predictions=targets, targets=targets)
    >>> result = gate(audit, audit, max_class_drop=3)
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_markdown(result, Path(folder) / "summary.md")
    ...     (Path(folder) / "summary.md").read_text(encoding="utf-8") == render_markdown(result)
    True
    """
    text = render_markdown(result)
    if Path(path).is_file():
        with name_in_errors(path), open(path, "ab", buffering=0) as file:
            file.write((b"\n" if Path(path).stat().st_size else b"") + text.encode("utf-8"))
    else:
        atomic_write_text(path, text)


def render_markdown(result: GateResult) -> str:
    """Return the gate as GitHub-flavored Markdown.

    >>> from classgap.audit import Audit, gate
    >>> targets = [0] * 40 + [1] * 40
    >>> audit = Audit.from_predictions(predictions=targets, targets=targets)
    >>> result = gate(audit, audit, max_class_drop=3)
    >>> print(render_markdown(result).splitlines()[0])
    ## classgap gate: audit → audit
    """
    title = f"classgap gate: {escape_markdown(result.before_name)} → {escape_markdown(result.after_name)}"
    rules = [
        ("✅" if rule.passed else "❌", f"`{_code(rule_title(rule))}`", escape_markdown(rule_sentence(rule)))
        for rule in result.rules
    ]
    warnings = [escape_markdown(sentence) for sentence in power_warnings(result)]
    parts = [f"## {title}", f"**{gate_headline(result)}**", *warnings, _table(("", "rule", "result"), rules, text=3)]
    groups = [tuple(map(escape_markdown, group_row(group))) for group in result.groups.values()]
    parts += [
        "### Groups of the baseline",
        "Accuracies in %, changes in percentage points.",
        _table(GROUP_HEADERS, groups),
    ]
    for rule in result.broken:
        if rule.violations:
            rows = [tuple(map(escape_markdown, violation_row(rule, each))) for each in rule.violations[:MAX_ROWS]]
            parts += [f"### `{_code(rule_title(rule))}`", _table(violation_headers(rule), rows)]
            if len(rule.violations) > MAX_ROWS:
                parts.append(f"… and {format_count(len(rule.violations) - MAX_ROWS)} more.")
    notes = [*match_sentences(result), power_sentence(result), level_sentence(result)]
    parts.append("\n".join(f"- {escape_markdown(note)}" for note in notes))
    return "\n\n".join(parts) + "\n"


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], text: int = 1) -> str:
    """A table whose first ``text`` columns are aligned to the left, the others to the right."""
    rule = ["---" if i < text else "--:" for i in range(len(headers))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headers, rule, *rows))


def _code(text: str) -> str:
    """Text for a code span in a table, which cannot contain backticks and bars."""
    return printable(text).replace("`", "'").replace("|", "\N{BROKEN BAR}")
