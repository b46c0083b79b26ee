"""The main figures of an audit, as a flat dictionary for loggers, and its files."""

from __future__ import annotations

from pathlib import Path

from classgap.audit import Audit


def audit_metrics(audit: Audit) -> dict[str, float]:
    """Return accuracies of the test set, the thirds and the worst class, and the gap between the thirds.

    Figures that do not exist, such as thirds of a single class, are left out.

    >>> metrics = audit_metrics(Audit.from_predictions(targets=[0, 0, 1], predictions=[0, 1, 1]))
    >>> metrics["worst_class_accuracy"], metrics["balanced_accuracy"]
    (0.5, 0.75)
    """
    thirds = {name: audit.groups[name].accuracy for name in ("easy", "medium", "hard") if name in audit.groups}
    figures = {
        "accuracy": audit.overall.accuracy,
        "balanced_accuracy": audit.overall.balanced_accuracy,
        **{f"{name}_accuracy": accuracy for name, accuracy in thirds.items()},
        "worst_class_accuracy": audit.gap.worst_class,
        "easy_hard_gap": audit.gap.easy_hard,
    }
    return {name: value for name, value in figures.items() if value is not None}


def write_audit(audit: Audit, folder: Path) -> None:
    """Write ``audit.json`` and ``report.html`` to a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    audit.save(folder / "audit.json")
    audit.to_html(folder / "report.html")
