"""Runs as inputs of a fix: their samples and scores, and errors before anything is computed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from run_cases import short_refits, stored, trained

from classgap.remedies import fix, load_fix
from classgap.remedies.runs import read_runs
from classgap.remedies.sources import Source


@pytest.fixture(scope="module", autouse=True)
def _short_refits() -> Iterator[None]:
    with short_refits():
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs with the same held-out samples."""
    folder = tmp_path_factory.mktemp("runs")
    return [trained(folder / f"seed{seed}", seed=seed, split_seed=0) for seed in (0, 1)]


def by_name(sources: tuple[Source, ...]) -> dict[str, Source]:
    return {source.name: source for source in sources}


def test_scores_are_those_that_training_stored(runs: list[Path]) -> None:
    samples = read_runs(runs[:1])
    baseline = samples.sources[0]
    held_out, test = (stored(runs[0] / name) for name in ("val_predictions.safetensors", "predictions.safetensors"))
    torch.testing.assert_close(baseline.logits_NK, held_out["logits"])
    torch.testing.assert_close(baseline.test_logits_NK, test["logits"])
    assert baseline.is_baseline
    assert samples.fit.targets_N.tolist() == held_out["targets"].tolist()
    assert samples.test is not None
    assert samples.test.targets_N.tolist() == test["targets"].tolist()
    assert samples.fit.train_counts_K is not None
    assert samples.fit.train_counts_K.tolist() == held_out["train_counts"].tolist()


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "ldam"},
        {"method": "lgm:variances=learned"},
        {"method": "post-hoc-logit-adjustment", "data": "digits:imbalance=5"},
        {"method": "lws"},
        {"method": "tau-norm:tau=0.5"},
        {"model": "resnet20", "max_steps": 3, "epochs": None},
        {"data": "mnist1d:n_train=200:n_test=200", "model": "conv1d:width=8"},
    ],
    ids=lambda settings: str(settings.get("method") or settings.get("model")),
)
def test_networks_are_rebuilt_with_the_heads_of_their_methods(tmp_path: Path, settings: dict[str, object]) -> None:
    run = trained(tmp_path / "run", **settings)
    logits_NK = read_runs([run]).sources[0].test_logits_NK
    torch.testing.assert_close(logits_NK, stored(run / "predictions.safetensors")["logits"], atol=1e-4, rtol=1e-4)


def test_a_frozen_checkpoint_is_rebuilt_by_its_architecture(tmp_path: Path, runs: list[Path]) -> None:
    run = trained(tmp_path / "probe", model=f"checkpoint:{runs[0]}:frozen=yes")
    samples = read_runs([run])
    torch.testing.assert_close(
        samples.sources[0].test_logits_NK, stored(run / "predictions.safetensors")["logits"], atol=1e-4, rtol=1e-4
    )
    assert by_name(samples.sources)["mirror"].module.config()["network"]["model"] == "mlp:width=16"


def test_reading_runs_leaves_random_states_alone(runs: list[Path]) -> None:
    torch.manual_seed(5)
    np.random.seed(5)
    expected = torch.rand(1), np.random.rand()
    torch.manual_seed(5)
    np.random.seed(5)
    read_runs(runs[:1])
    assert (torch.rand(1), np.random.rand()) == expected


def test_unfinished_run(tmp_path: Path, runs: list[Path]) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("config.yaml", "env.json", "metrics.jsonl", "predictions.safetensors"):
        (copy / name).write_bytes((runs[0] / name).read_bytes())
    with pytest.raises(ValueError, match="copy is not finished"):
        fix(copy)
    lines = (copy / "metrics.jsonl").read_text().splitlines()
    (copy / "metrics.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    (copy / "predictions.safetensors").unlink()
    (copy / "checkpoints").mkdir()
    with pytest.raises(ValueError, match="not finished"):
        fix(copy)


def test_run_without_validation_samples(tmp_path: Path) -> None:
    run = trained(tmp_path / "plain", val_fraction=0.0, epochs=1)
    with pytest.raises(ValueError, match="--val-fraction"):
        fix(run)


def test_runs_of_different_data(tmp_path: Path, runs: list[Path]) -> None:
    other = trained(tmp_path / "other", data="digits:fraction=0.5", epochs=1)
    with pytest.raises(ValueError, match=r"'digits' and 'digits:fraction=0\.5'"):
        fix([runs[0], other])


def test_runs_that_hold_out_different_samples(tmp_path: Path, runs: list[Path]) -> None:
    other = trained(tmp_path / "other", seed=5, val_fraction=0.01, epochs=1)
    with pytest.raises(ValueError, match=r"0, 5.* --split-seed"):
        fix([runs[0], other])


def test_samples_that_all_runs_held_out(tmp_path: Path, runs: list[Path]) -> None:
    more = trained(tmp_path / "more", seed=2, split_seed=0, val_fraction=0.3, epochs=1)
    samples = read_runs([more, runs[0]])
    held_out = [stored(run / "val_predictions.safetensors") for run in (more, runs[0])]
    shared = set(held_out[0]["index"].tolist()) & set(held_out[1]["index"].tolist())
    assert len(samples.fit) == len(shared) < len(held_out[0]["index"])
    assert str(len(shared)) in samples.notices[0]


def test_validation_samples_that_are_test_samples_are_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    targets = np.arange(120) % 3
    features = (rng.normal(size=(120, 4)) + 3 * np.eye(3, 4)[targets]).astype(np.float32)
    arrays = {"train_features": features, "train_targets": targets}
    np.savez(tmp_path / "data.npz", **arrays, test_features=features[:60] + 1, test_targets=targets[:60])
    data = f"features:{tmp_path / 'data.npz'}"
    first = trained(tmp_path / "first", data=data, val_fraction=0.5, epochs=1)
    held_out = stored(first / "val_predictions.safetensors")["index"].numpy()
    assert len(read_runs([first]).fit) == len(held_out)

    twins = np.concatenate([features[:50] + 1, features[held_out[:10]]])  # ten test samples are held-out ones
    np.savez(
        tmp_path / "data.npz", **arrays, test_features=twins, test_targets=np.r_[targets[:50], targets[held_out[:10]]]
    )
    samples = read_runs([trained(tmp_path / "second", data=data, val_fraction=0.5, epochs=1)])
    assert len(samples.fit) == len(held_out) - 10
    assert "10 " in samples.notices[0]


def test_changed_test_data_are_noticed(tmp_path: Path) -> None:
    targets = np.arange(60) % 3
    features = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    arrays = {"train_features": features, "train_targets": targets, "test_features": features + 1}
    np.savez(tmp_path / "data.npz", **arrays, test_targets=targets)
    run = trained(tmp_path / "run", data=f"features:{tmp_path / 'data.npz'}", epochs=1)
    np.savez(tmp_path / "data.npz", **arrays, test_targets=targets[::-1].copy())
    with pytest.raises(ValueError, match="test samples"):
        read_runs([run])
    np.savez(tmp_path / "data.npz", **(arrays | {"test_features": 9 - 5 * features}), test_targets=targets)
    with pytest.raises(ValueError, match="test predictions differ"):
        read_runs([run])


def test_fix_of_runs_is_proved_and_reusable(tmp_path: Path, runs: list[Path]) -> None:
    messages: list[str] = []
    result = fix(runs, max_easy_loss=20, max_overall_loss=20, progress=messages.append)
    names = {remedy.name for remedy in result.remedies}
    assert {"mirror", "ten-views", "ensemble", "ensemble+mirror", "soup"} <= names
    assert any("seed1" in message for message in messages)
    assert result.n_test == len(stored(runs[0] / "predictions.safetensors")["targets"])
    assert result.chosen is not None
    assert result.fix is not None
    result.fix.save(tmp_path / "fixed")
    assert load_fix(tmp_path / "fixed").name == result.chosen
