"""Notes describe what is computed."""

import re

import numpy as np
import pytest

from classgap.audit import Audit, AuditDiff, AuditSettings
from classgap.audit.stats.intervals import newcombe_interval, wilson_interval
from classgap.report.notes import audit_notes, diff_notes

TARGETS = np.repeat([0, 1, 2], 10)


def audit_with(right: tuple[int, int, int], **settings) -> Audit:
    """Audit three classes of ten samples with the given numbers of correct predictions."""
    hit = np.concatenate([np.arange(10) < count for count in right])
    labels = np.where(hit, TARGETS, (TARGETS + 1) % 3)
    return Audit.from_predictions(predictions=labels, targets=TARGETS, settings=AuditSettings(**settings))


@pytest.mark.parametrize(("confidence_level", "text"), [(0.975, "97.5 %"), (0.999, "99.9 %"), (0.9, "90 %")])
def test_notes_name_the_confidence_level(confidence_level: float, text: str):
    before, after = (
        audit_with((9, 5, 2), confidence_level=confidence_level),
        audit_with((9, 6, 4), confidence_level=confidence_level),
    )
    notes = {
        **audit_notes(before),
        **{f"diff {name}": note for name, note in diff_notes(AuditDiff.from_audits(before, after)).items()},
    }
    levels = {found for note in notes.values() for found in re.findall(r"([\d.]+ ?%) percentile", note)}
    assert levels == {text}
    assert text in notes["interval"]
    below = re.search(r"below ([\d.]+);", notes["diff verdict"])
    assert float(below[1]) == pytest.approx(1 - confidence_level)


def test_notes_name_the_fallback_interval():
    audit = audit_with((10, 10, 0))
    assert audit.groups["easy"].interval == wilson_interval(10, 10)
    assert audit.gap.intervals["worst_tenth"] == wilson_interval(0, 10)
    assert audit.gap.intervals["easy_hard"] == newcombe_interval((10, 10), (0, 10))
    perfect = audit_with((10, 10, 10))
    assert perfect.overall.balanced_interval == wilson_interval(30, 30)
    for figure in ("groups", "gap.worst_tenth", "balanced_accuracy"):
        assert "Wilson" in audit_notes(audit)[figure]
    assert "Newcombe" in audit_notes(audit)["gap.easy_hard"]


def test_notes_name_centered_intervals():
    note = diff_notes(AuditDiff.from_audits(audit_with((9, 5, 2)), audit_with((9, 6, 4))))["interval"]
    assert "Gini coefficient are centered" in note


def test_note_of_gamma():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(30, 4)) * (1 + TARGETS[:, None])
    audit = Audit.from_predictions(
        predictions=TARGETS, targets=TARGETS, features=features, settings=AuditSettings(map="none")
    )
    roots = np.cbrt([(features[k == TARGETS] ** 2).sum(axis=1).mean() for k in range(3)])
    assert [entry.gamma for entry in audit.classes] == pytest.approx((3 * roots / roots.sum()).tolist())
    note = audit_notes(audit)["gamma"]
    assert "cube root of the mean ‖f‖²" in note
    assert "ŝ" not in note  # divides by n - 1, unlike γ
