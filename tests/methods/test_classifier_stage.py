"""cRT changes the head only; LWS only scales its rows."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from method_cases import STEPS, assert_resumes, copied, first_batch, moons_run, moons_trained
from training_cases import metrics, new_run

from classgap.data.sampling.orders import ClassBalancedOrder
from classgap.engine.storage.checkpoint import load_weights
from classgap.methods.lws import ScaledLinear

IMAGES = {"data": "digits:fraction=0.2", "model": "resnet20", "batch_size": 32, "augment": "none"}


def trained_tensors(out: Path, method: str, **settings) -> dict[str, torch.Tensor]:
    return load_weights(moons_trained(out, method, **settings).model)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    return trained_tensors(tmp_path_factory.mktemp("plain") / "run", "erm")


def test_crt_changes_only_the_head(tmp_path: Path, plain: dict[str, torch.Tensor]) -> None:
    again = trained_tensors(tmp_path / "run", "crt")
    assert {name for name in plain if not torch.equal(plain[name], again[name])} == {"3.weight", "3.bias"}


def test_crt_reinitializes_the_head_and_balances_classes() -> None:
    run = moons_run("crt")
    before = copied(run.model)
    run.position.stage = 1
    run.begin_stage()
    assert not torch.equal(run.model[3].weight, before["3.weight"])
    assert torch.equal(run.model[1].weight, before["1.weight"])
    assert isinstance(run.order, ClassBalancedOrder)
    assert run.train.targets[run.order(0)].double().mean() > 0.4  # of the moon that has 5 %


def test_lws_only_scales(tmp_path: Path, plain: dict[str, torch.Tensor]) -> None:
    scaled = trained_tensors(tmp_path / "run", "lws:fraction=1")
    assert scaled.keys() == plain.keys()
    assert torch.equal(scaled["1.weight"], plain["1.weight"])
    factors = scaled["3.weight"] / plain["3.weight"]
    torch.testing.assert_close(factors, factors[:, :1].expand_as(factors))
    torch.testing.assert_close(scaled["3.bias"], plain["3.bias"] * factors[:, 0])
    assert float((factors - 1).abs().min()) > 0.01


def test_scaled_layer() -> None:
    linear = torch.nn.Linear(4, 3)
    scaled, inputs = ScaledLinear.from_linear(linear), torch.randn(5, 4)
    assert torch.equal(scaled(inputs), linear(inputs))
    scaled.scale.data.copy_(torch.tensor([0.5, 1.0, 2.0]))
    torch.testing.assert_close(scaled.to_linear()(inputs), linear(inputs) * torch.tensor([0.5, 1.0, 2.0]))


@pytest.mark.parametrize("method", ["crt", "lws"])
def test_the_last_stage_is_cross_entropy_on_a_frozen_encoder(method: str) -> None:
    run = new_run(**IMAGES, method=f"mr2+{method}")
    run.position.stage = 1
    run.begin_stage()
    run.model.train()
    batch, before = first_batch(run), copied(run.model)
    value = run.method.objective(run, batch)
    run.model.eval()
    torch.testing.assert_close(value, F.cross_entropy(run.model(batch.inputs), batch.labels))
    run.model.train()
    run.method.step(run, batch)
    changed = {name for name, each in run.model.state_dict().items() if not torch.equal(each, before[name])}
    assert changed == ({"fc.weight", "fc.bias"} if method == "crt" else {"fc.scale"})


@pytest.mark.parametrize("method", ["crt", "lws", "sam+mr2+crt"])
def test_stopped_in_each_stage(method: str, tmp_path: Path) -> None:
    run = assert_resumes(tmp_path, method, [5, 3 * STEPS, 3 * STEPS + 4])
    lines = metrics(run)
    assert [line["stage"] for line in lines[:-1]] == ["train"] * 3 + ["re-training"]
    assert "representation" not in lines[3]  # terms of its own loss


@pytest.mark.parametrize("method", ["crt", "lws"])
def test_weight_interpolation_is_rejected(method: str) -> None:
    with pytest.raises(ValueError, match="wise_ft_alpha must be 1"):
        moons_run(method, wise_ft_alpha=0.5)


def test_the_best_epoch_is_kept_with_its_scales(tmp_path: Path) -> None:
    run = moons_trained(tmp_path / "run", "lws:fraction=1", val_fraction=0.25, monitor="balanced")
    lines = metrics(run)
    best = max(lines[3:-1], key=lambda line: (line["val_balanced"], line["val_accuracy"], -line["epoch"]))
    assert lines[-1]["chosen_epoch"] == best["epoch"]
