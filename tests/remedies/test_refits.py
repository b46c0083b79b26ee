"""Heads retrained on frozen features: their optima, their place in a network, and prediction files with features."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from run_cases import short_refits, stored, trained
from torch import Tensor, nn

from classgap.audit.io.predictions import Predictions
from classgap.data import Split, load
from classgap.remedies import fix, load_fix
from classgap.remedies.fixed_model import Fix
from classgap.remedies.heads import FrozenFeatures, refit_heads
from classgap.remedies.modules import Part
from classgap.remedies.networks import Network
from classgap.remedies.refits import compute_features, refit_predictions
from classgap.remedies.runs import read_runs
from classgap.remedies.sources import Source

CENTERS = 1.2 * torch.eye(4, 6)
COUNTS = torch.tensor([900, 600, 200, 60])


def features_of(targets: Tensor, seed: int) -> Tensor:
    noise = torch.randn(len(targets), 6, generator=torch.Generator().manual_seed(seed))
    return CENTERS[targets] + noise + 0.5


def fitted(features: Tensor, targets: Tensor, shift: Tensor) -> nn.Linear:
    """Minimize the mean cross-entropy of logits + shift in float64."""
    head = nn.Linear(6, 4).double()
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(features.double()) + shift, targets)
        loss.backward()
        return loss

    optimizer.step(closure)
    return head.float().requires_grad_(False)


@pytest.fixture(scope="module")
def data() -> FrozenFeatures:
    targets = torch.repeat_interleave(torch.arange(4), COUNTS)
    features = features_of(targets, 0)
    plain = fitted(features, targets, torch.zeros(4))
    return FrozenFeatures(features, targets, tuple("abcd"), plain.weight.data, plain.bias.data)


@pytest.fixture
def few_steps() -> Iterator[None]:
    with short_refits():
        yield


@pytest.fixture(scope="module")
def heads(data: FrozenFeatures) -> dict[str, nn.Module]:
    return dict(refit_heads(data, lambda message: None))


def test_methods_that_are_tried(heads: dict[str, nn.Module], data: FrozenFeatures) -> None:
    losses = {"group-dro", "mr2:strength=0", "ldam", "logit-adjustment", "crt"}
    assert set(heads) == {f"head:{name}" for name in losses | {"lws", "tau-norm:tau=0.5", "tau-norm:tau=1"}}
    rows = torch.cat([(data.targets_M == k).nonzero()[:60, 0] for k in range(4)])
    unknown = FrozenFeatures(data.features_MD[rows], data.targets_M[rows], data.class_names)
    # Balanced classes need no logit adjustment; without a head there is nothing to rescale.
    with short_refits():
        found = dict(refit_heads(unknown, lambda message: None))
    assert set(found) == {f"head:{name}" for name in losses - {"logit-adjustment"}}


def test_tau_norm_divides_rows_by_powers_of_their_norms(heads: dict[str, nn.Module], data: FrozenFeatures) -> None:
    assert data.weight_KD is not None
    for tau in (0.5, 1.0):
        head = heads[f"head:tau-norm:tau={tau:g}"]
        expected = np.array([row / np.linalg.norm(row) ** tau for row in data.weight_KD.numpy()])
        np.testing.assert_allclose(head.weight, expected, rtol=1e-5)
        assert not head.bias.any()


def test_logit_adjustment_reaches_its_optimum(heads: dict[str, nn.Module], data: FrozenFeatures) -> None:
    shift = (COUNTS / COUNTS.sum()).log()
    best = fitted(data.features_MD, data.targets_M, shift)

    def loss(head: nn.Module) -> float:
        return nn.functional.cross_entropy(head(data.features_MD) + shift, data.targets_M).item()

    before = nn.Linear(6, 4)
    before.load_state_dict({"weight": data.weight_KD, "bias": data.bias_K})
    reached, optimum = loss(heads["head:logit-adjustment"]), loss(best)
    assert optimum <= reached < optimum + 0.05 * (loss(before) - optimum)


def test_balanced_sampling_lowers_the_balanced_loss(heads: dict[str, nn.Module], data: FrozenFeatures) -> None:
    weight = 1 / COUNTS

    def balanced_loss(head: nn.Module) -> float:
        return nn.functional.cross_entropy(head(data.features_MD), data.targets_M, weight=weight).item()

    before = nn.Linear(6, 4)
    before.load_state_dict({"weight": data.weight_KD, "bias": data.bias_K})
    for name in ("crt", "lws", "group-dro"):
        assert balanced_loss(heads[f"head:{name}"]) < balanced_loss(before) - 0.05


def test_learned_scales_keep_the_directions_of_the_rows(heads: dict[str, nn.Module], data: FrozenFeatures) -> None:
    assert data.weight_KD is not None
    cosines = nn.functional.cosine_similarity(heads["head:lws"].weight, data.weight_KD)
    assert cosines.min() > 0.99


def test_the_scale_of_features_does_not_matter(heads: dict[str, nn.Module], data: FrozenFeatures) -> None:
    assert data.weight_KD is not None
    large = FrozenFeatures(100 * data.features_MD, data.targets_M, data.class_names, data.weight_KD / 100, data.bias_K)
    again = dict(refit_heads(large, lambda message: None))
    for name in ("head:crt", "head:logit-adjustment", "head:ldam"):
        expected = heads[name](data.features_MD)
        torch.testing.assert_close(again[name](large.features_MD), expected, atol=1e-2, rtol=1e-2)


def predictions(data: FrozenFeatures, seed: int, **arrays: Any) -> Predictions:
    targets = torch.arange(400) % 4
    features = features_of(targets, seed)
    logits = nn.functional.linear(features, data.weight_KD, data.bias_K)
    head = (data.weight_KD, data.bias_K)
    return Predictions.from_arrays(targets, logits=logits, features=features, head=head, **arrays)


@pytest.mark.usefixtures("few_steps")
def test_prediction_files_with_features(tmp_path: Path, data: FrozenFeatures) -> None:
    train = {"train_features": data.features_MD, "train_targets": data.targets_M}
    first, second = predictions(data, 1, **train), predictions(data, 2)
    result = fix(first, second)
    names = [remedy.name for remedy in result.remedies]
    assert "head:crt" in names
    assert "head:ldam" in names
    sources, notices = refit_predictions(first, second, lambda message: None)
    assert not notices
    for source in sources:
        assert source.inputs == "features"
        assert isinstance(source.module, Part)
        assert second.features_ND is not None
        saved = Fix(source.name, source.inputs, [source.module], first.class_names)
        saved.save(tmp_path / "fixed")
        torch.testing.assert_close(load_fix(tmp_path / "fixed")(second.features_ND), source.test_logits_NK)
    nested = fix(first)
    assert nested.nested
    assert "head:crt" in [remedy.name for remedy in nested.remedies]
    assert refit_predictions(second, None, lambda message: None) == ([], ())


def test_heads_are_trained_on_other_samples_only(data: FrozenFeatures, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = predictions(data, 1), predictions(data, 2)
    seen = []
    monkeypatch.setattr("classgap.remedies.refits.refit_heads", lambda given, progress: seen.append(given) or ())
    for leaked, test in ((second, second), (first, second), (first, None)):
        assert leaked.features_ND is not None
        features_MD = torch.cat([data.features_MD, torch.as_tensor(leaked.features_ND)])
        targets_M = torch.cat([data.targets_M, torch.as_tensor(leaked.targets_N)])
        train = {"train_features": features_MD, "train_targets": targets_M}
        _, (notice,) = refit_predictions(predictions(data, 1, **train), test, lambda message: None)
        assert notice.startswith(f"{len(leaked)} training samples")
        torch.testing.assert_close(seen[-1].features_MD, data.features_MD)
        assert torch.equal(seen[-1].targets_M, data.targets_M)


def test_duplicates_of_training_samples_train_no_head(data: FrozenFeatures, monkeypatch: pytest.MonkeyPatch) -> None:
    first = predictions(data, 1)
    assert first.features_ND is not None
    features_MD = data.features_MD.clone()
    features_MD[3] = torch.as_tensor(first.features_ND)[0]  # one sample of the model's training set
    seen = []
    monkeypatch.setattr("classgap.remedies.refits.refit_heads", lambda given, progress: seen.append(given) or ())
    refit_predictions(
        predictions(data, 1, train_features=features_MD, train_targets=data.targets_M), None, lambda message: None
    )
    others = torch.arange(len(features_MD)) != 3
    torch.testing.assert_close(seen[0].features_MD, features_MD[others])
    assert torch.equal(seen[0].targets_M, data.targets_M[others])


def test_class_without_training_features(data: FrozenFeatures) -> None:
    few = data.targets_M < 3
    train = {"train_features": data.features_MD[few], "train_targets": data.targets_M[few]}
    sources, notices = refit_predictions(predictions(data, 1, **train), None, lambda message: None)
    assert not sources
    assert "'3'" in notices[0]


def test_features_that_are_too_large(data: FrozenFeatures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("classgap.remedies.heads.MAX_VALUES", 100)
    assert "1760" in str(data.problem())


def test_many_training_samples_keep_their_class_frequencies(
    data: FrozenFeatures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("classgap.remedies.refits.MAX_SAMPLES", 880)
    seen = []
    monkeypatch.setattr("classgap.remedies.refits.refit_heads", lambda data, progress: seen.append(data) or [])
    train = {"train_features": data.features_MD, "train_targets": data.targets_M}
    refit_predictions(predictions(data, 1, **train), None, lambda message: None)
    assert torch.bincount(seen[0].targets_M).tolist() == [450, 300, 100, 30]


def heads_of(run: Path) -> dict[str, Source]:
    return {source.name: source for source in read_runs([run]).sources if source.name.startswith("head:")}


@pytest.mark.usefixtures("few_steps")
def test_refitted_heads_of_a_run_take_its_inputs(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", data="digits:imbalance=10", epochs=4)
    sources = heads_of(run)
    assert {"head:crt", "head:ldam", "head:lws", "head:tau-norm:tau=1"} <= set(sources)
    data = load("digits:imbalance=10")
    assert data.mean is not None
    assert data.std is not None
    images = (data.test.inputs[torch.arange(50)].float() / 255 - data.mean[0]) / data.std[0]
    body = stored(run / "checkpoints" / "model.safetensors")
    for name, source in sources.items():
        assert source.inputs == "images"
        assert source.test_logits_NK is not None
        assert isinstance(source.module, Part)
        Fix(name, source.inputs, [source.module], data.class_names).save(tmp_path / "fixed")
        loaded = load_fix(tmp_path / "fixed")
        torch.testing.assert_close(loaded(images), source.test_logits_NK[:50], atol=1e-4, rtol=1e-4)
        weights = loaded.state_dict()
        assert torch.equal(weights["parts.0.module.1.weight"], body["1.weight"])
        assert not torch.equal(weights["parts.0.module.3.weight"], body["3.weight"])


def test_stored_training_features_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path / "run", save_train_features=True)
    features = stored(run / "train_predictions.safetensors")["features"]
    splits: list[int] = []
    seen: list[FrozenFeatures] = []

    def counted(network: Network, split: Split, *rest: Any) -> Tensor:
        splits.append(len(split))
        return compute_features(network, split, *rest)

    monkeypatch.setattr("classgap.remedies.refits.compute_features", counted)
    monkeypatch.setattr("classgap.remedies.refits.refit_heads", lambda data, progress: seen.append(data) or [])
    read_runs([run])
    assert len(features) not in splits
    torch.testing.assert_close(seen[0].features_MD, features.float())
    (run / "train_predictions.safetensors").unlink()
    read_runs([run])
    assert len(features) in splits
    torch.testing.assert_close(seen[1].features_MD, features.float(), atol=1e-2, rtol=1e-2)
