"""Classes, number of points and neighborhoods of the 2-D map."""

import numpy as np
import pytest
from audit_cases import audit_of, blobs
from sklearn.neighbors import KNeighborsClassifier

from classgap.audit import AuditSettings, build
from classgap.audit.geometry import embedding_map


@pytest.fixture(scope="module", autouse=True)
def _default_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "STEPS", embedding_map.STEPS)
        yield


@pytest.fixture(scope="module")
def audit(_default_steps):
    settings = AuditSettings(n_resamples=10, map=["class 1", 3, "class 4"], map_points=90)
    return audit_of(*blobs([1.0] * 5, each=50), settings=settings)


def test_chosen_classes_and_number_of_points(audit):
    assert audit.map.classes == ("class 1", "class 3", "class 4")
    assert np.bincount(audit.map.target, minlength=5).tolist() == [0, 30, 0, 30, 30]
    assert len(audit.map.x) == len(audit.map.y) == len(audit.map.prediction) == 90
    assert 0 <= min(audit.map.x) <= max(audit.map.x) <= 1


def test_separate_classes_are_separate_in_the_map(audit):
    points = np.column_stack([audit.map.x, audit.map.y])
    near = KNeighborsClassifier(5).fit(points, audit.map.target)
    assert near.score(points, audit.map.target) > 0.95


def test_unknown_class_is_rejected_and_too_few_points_give_no_map():
    case = blobs([1.0] * 3, each=3)
    assert audit_of(*case, settings=AuditSettings(n_resamples=10)).map is None
    with pytest.raises(ValueError, match="map has the unknown label 'x'"):
        audit_of(*case, settings=AuditSettings(map=["x"]))


def test_auto_shows_the_worst_class_and_its_confusions():
    audit = audit_of(*blobs([1.0] * 11 + [6.0], each=20), settings=AuditSettings(n_resamples=10, map_points=80))
    assert "class 11" in audit.map.classes
    assert audit.classes[11].top_confusion.name in audit.map.classes
    assert len(audit.map.classes) <= 8


def test_features_without_any_variation_have_no_map():
    settings = AuditSettings(n_resamples=10)
    targets, features, weight, bias = blobs([1.0] * 3, each=10)
    assert audit_of(targets, np.ones_like(features), weight, bias, settings=settings).map is None
    features[:] = np.eye(16)[0] * (targets == 0)[:, None]  # only two distinct points
    two = audit_of(targets, features, weight, bias, settings=settings).map
    assert two is None or bool(np.isfinite([two.x, two.y]).all())
