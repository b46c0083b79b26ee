"""Comparison and gate of two real models on ImageNet's validation set, where the files are present."""

from pathlib import Path

import numpy as np
import pytest

from classgap.audit import Audit, compare, gate
from classgap.audit.io.sources import read_audits

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "real_predictions"
FILES = [FOLDER / f"imagenet_val_{name}.npz" for name in ("dino", "simclr")]
pytestmark = pytest.mark.skipif(not FILES[0].exists(), reason="needs ../shared/data/real_predictions")


@pytest.fixture(scope="module")
def models() -> list[Audit]:
    """DINO and SimCLR."""
    return read_audits(FILES)


def test_fdr_finds_what_holm_does_not(models):
    holm, fdr = (compare(*models, correction=correction) for correction in ("holm", "auto"))
    assert (len(holm.gained), len(holm.regressed)) == (0, 11)
    assert (fdr.correction, len(fdr.gained), len(fdr.regressed)) == ("fdr_bh", 1, 116)
    assert fdr.changed.at_least > len(fdr.regressed)
    hard = fdr.groups["hard"]
    assert (hard.gained, hard.regressed) == (67, 248)
    assert hard.sign_p_value < 0.01


def test_images_are_matched_by_their_number(models, tmp_path):
    saved = np.load(FILES[1])
    kept = np.random.default_rng(0).permutation(50_000)[:40_000]
    rows = {name: saved[name][kept] for name in ("targets", "predictions", "index")}
    np.savez(tmp_path / "part.npz", class_names=saved["class_names"], **rows)
    diff = compare(models[0], tmp_path / "part.npz")
    assert (diff.n_samples, diff.only_before, diff.only_after) == (40_000, 10_000, 0)
    whole = models[1].overall.accuracy - models[0].overall.accuracy
    assert diff.overall.change == pytest.approx(whole, abs=0.005)


def test_gate_stops_a_worse_model(models):
    rules = {"max_class_drop": 3, "max_group_drop": {"hard": 0.5}}
    assert not gate(*models, **rules).passed
    assert gate(*reversed(models), **rules).rules[1].passed
