"""``compare`` and ``rank_by`` take audits and paths."""

from pathlib import Path

import numpy as np
import pytest
from audit_cases import QUICK

import classgap as cg
from classgap.audit.io.sources import ACCURACIES_ONLY, read_audit, read_audits

TARGETS = np.repeat(np.arange(3), 30)


def predictions(seed: int, wrong: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(90) < wrong, (TARGETS + 1) % 3, TARGETS)


def save_npz(path: Path, seed: int, wrong: float) -> Path:
    path.parent.mkdir(exist_ok=True)
    np.savez(path, targets=TARGETS, predictions=predictions(seed, wrong))
    return path


def audit(seed: int, wrong: float, name: str = "audit") -> cg.Audit:
    return cg.Audit.from_predictions(
        targets=TARGETS, predictions=predictions(seed, wrong), name=name, settings=ACCURACIES_ONLY
    )


def test_every_kind_of_source_compares_alike(tmp_path):
    file = save_npz(tmp_path / "before.npz", 0, 0.5)
    run = save_npz(tmp_path / "run" / "predictions.npz", 1, 0.1).parent
    audit(0, 0.5, "before").save(tmp_path / "before.json")
    expected = cg.compare(audit(0, 0.5, "before"), audit(1, 0.1, "run"))
    assert cg.compare(file, run) == expected
    assert cg.compare(str(file), str(run)) == expected
    assert cg.compare(tmp_path / "before.json", run) == expected
    assert cg.compare(audit(0, 0.5, "before"), run) == expected


def test_several_n_runs(tmp_path):
    befores = [save_npz(tmp_path / f"plain{seed}.npz", seed, 0.4) for seed in range(3)]
    afters = [audit(10 + seed, 0.1, f"mr2 {seed}") for seed in range(3)]
    diff = cg.compare(befores, afters, confidence_level=0.9, n_resamples=100, seed=3)
    assert (diff.n_runs, diff.confidence_level, diff.n_resamples, diff.seed) == (3, 0.9, 100, 3)
    assert diff.before_name == "plain0"


def test_sources_of_one_name_are_named_by_their_paths(tmp_path):
    paths = [save_npz(tmp_path / folder / "model.npz", seed, 0.3) for seed, folder in enumerate(["a", "b"])]
    assert [found.name for found in read_audits(paths)] == [str(path) for path in paths]
    assert [found.name for found in read_audits(paths[:1])] == ["model"]
    kept = audit(0, 0.3, "model")
    assert [found.name for found in read_audits([kept, paths[0]])] == ["model", str(paths[0])]


@pytest.mark.parametrize("confidence_level", [0.0, 1.0, 95])
def test_levels_are_checked(confidence_level):
    with pytest.raises(ValueError, match="confidence_level"):
        cg.compare(audit(0, 0.5), audit(1, 0.1), confidence_level=confidence_level)


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.npz does not exist"):
        cg.compare(tmp_path / "none.npz", audit(0, 0.1))


def test_rank_by_takes_a_path(tmp_path):
    file = save_npz(tmp_path / "before.npz", 0, 0.5)
    by_path = cg.Audit.from_predictions(targets=TARGETS, predictions=predictions(1, 0.1), rank_by=file, settings=QUICK)
    by_audit = cg.Audit.from_predictions(
        targets=TARGETS, predictions=predictions(1, 0.1), rank_by=read_audit(file), settings=QUICK
    )
    assert by_path == by_audit
    assert by_path.rank_by == "baseline"
