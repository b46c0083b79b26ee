"""Template variables of the page of a history."""

from __future__ import annotations

from typing import Any

from classgap.audit.history import History
from classgap.report.charts.history_chart import SERIES, history_chart
from classgap.report.formatting import format_level, format_percent_interval
from classgap.report.history_rows import HEADERS, history_headline, release_row

NOTES = {
    "overall_accuracy": "Accuracy over all test samples of the release. Interval: Wilson.",
    "hard_third": (
        "Mean accuracy of the third of the classes with the lowest accuracies in that release. “First hard” follows "
        "the classes that were in the hard third of the first release; these tend to rise without any real change "
        "(regression to the mean). Interval: bootstrap over test samples."
    ),
    "worst_class": "Lowest accuracy of a class. Interval: Wilson.",
    "gap": "Easy third − hard third of the release's own ranking. Interval: bootstrap over test samples.",
    "comparison": (
        "Releases may have different test samples, so differences between them include changes of the test set. "
        "classgap compare and classgap gate compare two releases on the samples they share."
    ),
}


def history_page(history: History) -> dict[str, Any]:
    """Return the variables of ``history.html``."""
    intervals = [
        (
            release.name,
            *(format_percent_interval(getattr(release, interval)) for _, interval, _, _ in SERIES),
        )
        for release in history.releases
    ]
    return {
        "history": history,
        "headline": history_headline(history),
        "level": format_level(history.confidence_level),
        "chart": history_chart(history),
        "legend": [(kind, label) for _, _, label, kind in SERIES],
        "headers": HEADERS,
        "rows": [release_row(release) for release in history.releases],
        "interval_headers": ["Release", *(label[:1].upper() + label[1:] for _, _, label, _ in SERIES)],
        "interval_rows": intervals,
        "data_sets": [],
        "notes": NOTES,
    }
