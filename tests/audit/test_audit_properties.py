"""What holds for audits of anything: they can be saved, and neither order nor names of things change the numbers."""

import dataclasses
import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.audit import Audit, AuditSettings

QUICK = AuditSettings(n_resamples=10, map="none")


@st.composite
def inputs(draw):
    samples, classes, width = draw(st.integers(1, 30)), draw(st.integers(1, 7)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    targets = rng.integers(0, classes, samples)
    scale = draw(st.sampled_from([0.0, 1e-6, 1.0, 1e4]))
    given = {"targets": targets, "logits": rng.normal(size=(samples, classes)) * scale + 2 * np.eye(classes)[targets]}
    if draw(st.booleans()):
        given["features"] = rng.normal(size=(samples, width)) * draw(st.sampled_from([0.0, 1e-5, 1.0, 1e3]))
        given["head"] = (rng.normal(size=(classes, width)) * draw(st.sampled_from([0.0, 1.0])), None)
    if draw(st.booleans()):
        given["train_counts"] = rng.integers(0, 300, classes)
    if draw(st.booleans()):
        given["train_targets"], given["train_predictions"] = rng.integers(0, classes, (2, 20))
    return given


@settings(max_examples=60, deadline=None)
@given(inputs())
def test_every_audit_is_valid_json_and_comes_back(data):
    audit = Audit.from_predictions(**data, settings=QUICK)
    text = json.dumps(audit.to_dict(), allow_nan=False)
    assert Audit.from_dict(json.loads(text)) == audit
    assert audit.diff(audit).overall.change == 0


@settings(max_examples=30, deadline=None)
@given(inputs(), st.integers(0, 100))
def test_order_of_samples_does_not_matter(data, seed):
    order = np.random.default_rng(seed).permutation(len(data["targets"]))
    moved = {name: data[name][order] for name in ("targets", "logits")}
    first, second = (Audit.from_predictions(case["logits"], case["targets"], settings=QUICK) for case in (data, moved))
    for a, b in zip(first.classes, second.classes, strict=True):
        assert dataclasses.replace(a, **_floats(None, a)) == dataclasses.replace(b, **_floats(None, b))
        np.testing.assert_allclose([*_floats(a, a).values()], [*_floats(b, b).values()], rtol=1e-6, atol=1e-9)
    assert first.gap == second.gap
    assert first.pairs == second.pairs


def _floats(values, entry):
    """The figures that are sums over samples, which rounding makes depend on their order."""
    names = [name for name in ("margin", "calibration_error") if getattr(entry, name) is not None]
    found = {name: getattr(values, name) if values else None for name in names}
    if values is None:
        # Samples are numbered by their position.
        return found | {"logit_margin": None, "confident_errors": (), "doubted_samples": ()}
    return found | ({"logit_margin": entry.logit_margin.mean} if entry.logit_margin else {})


@settings(max_examples=30, deadline=None)
@given(inputs())
def test_names_do_not_matter(data):
    classes = data["logits"].shape[1]
    plain = Audit.from_predictions(**data, settings=QUICK)
    named = Audit.from_predictions(**data, class_names=[f"<i>{k}</i>" for k in range(classes)], settings=QUICK)
    assert [entry.accuracy for entry in plain.classes] == [entry.accuracy for entry in named.classes]
    assert plain.gap.intervals == named.gap.intervals
    assert [pair.rate for pair in plain.pairs] == [pair.rate for pair in named.pairs]
