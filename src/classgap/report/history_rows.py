"""Table rows and sentences of a history, shared by the HTML page and the terminal output."""

from __future__ import annotations

from classgap.audit.history import History, Release
from classgap.report.formatting import format_count, format_percent

HEADERS = ("Release", "Accuracy", "Hard third", "Hard third of the first release", "Worst class", "Gap", "Samples")


def history_headline(history: History) -> str:
    """Return the change from the first to the last release in one sentence."""
    first, last = history.releases[0], history.releases[-1]
    if len(history.releases) == 1 or first.hard is None or last.hard is None:
        return f"{last.name}: accuracy {format_percent(last.overall)} %."
    return (
        f"{first.name} → {last.name}: accuracy {format_percent(first.overall)} % → {format_percent(last.overall)} %, "
        f"hard third {format_percent(first.hard)} % → {format_percent(last.hard)} %, gap "
        f"{format_percent(first.gap)} → {format_percent(last.gap)} points."
    )


def release_row(release: Release) -> tuple[str, ...]:
    """Return the cells of ``HEADERS``, accuracies in percent."""
    return (
        release.name,
        format_percent(release.overall),
        format_percent(release.hard),
        format_percent(release.first_hard),
        f"{format_percent(release.worst_class)} ({release.worst_name})",
        format_percent(release.gap),
        format_count(release.n_samples),
    )
