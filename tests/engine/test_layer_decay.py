"""Layer-wise learning-rate decay against timm, through methods, averages and interruptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from training_cases import metrics, stopped_after

from classgap.data import Dataset, Split
from classgap.engine import Run, RunDirectory, TrainConfig
from classgap.engine.defaults import resolve_config
from classgap.engine.train import train

optim = pytest.importorskip("timm.optim")

VIT: dict[str, Any] = {  # timm's smallest vision transformer, with patches of 16 pixels
    "data": "noise",
    "model": "timm:test_vit:drop_path=0.1",
    "augment": "none",
    "optimizer": "adamw",
    "lr": 1e-3,
    "weight_decay": 0.05,
    "epochs": 2,
    "batch_size": 32,
    "layer_decay": 0.65,
}


def images() -> Dataset:
    made = torch.Generator().manual_seed(0)
    splits = [
        Split.from_arrays(
            torch.randint(0, 256, (count, 3, 16, 32), generator=made, dtype=torch.uint8), torch.arange(count) % 4
        )
        for count in (96, 16)
    ]
    return Dataset("noise", *splits, tuple("abcd"), "image", (3, 16, 32), (0.5,) * 3, (0.3,) * 3)


def new_run(**settings: Any) -> Run:
    return Run(resolve_config(TrainConfig(**settings), images()), images(), torch.device("cpu"))


def trained(out: Path, **settings: Any) -> RunDirectory:
    return RunDirectory(train(TrainConfig(out=out, **settings), data=images(), quiet=True).run_dir)


def by_name(run: Any, network: torch.nn.Module) -> dict[str, tuple[float, float]]:
    """Return initial rate and weight decay of each parameter."""
    names = {parameter: name for name, parameter in network.named_parameters()}
    return {
        names[parameter]: (group["initial_lr"], group["weight_decay"])
        for group in run.optimizer.param_groups
        for parameter in group["params"]
        if parameter in names
    }


def expected(network: torch.nn.Module) -> dict[str, tuple[float, float]]:
    names = {parameter: name for name, parameter in network.named_parameters()}
    groups = optim.param_groups_layer_decay(
        network, weight_decay=0.05, no_weight_decay_list=network.no_weight_decay(), layer_decay=0.65
    )
    return {
        names[each]: (pytest.approx(1e-3 * group["lr_scale"]), group["weight_decay"])
        for group in groups
        for each in group["params"]
    }


@pytest.mark.parametrize("method", ["erm", "focal:form=sigmoid", "ldam", "sam+mr2"])
def test_groups_are_those_of_timm(method: str) -> None:
    run = new_run(**VIT, method=method)
    assert by_name(run, run.model) == expected(run.model)
    assert run.optimizer.param_groups[0]["initial_lr"] == 1e-3  # logged as the rate


def test_rates_of_a_vision_transformer_by_hand() -> None:
    run = new_run(**VIT)
    rates, depth = by_name(run, run.model), len(run.model.blocks)
    assert rates["head.weight"] == (1e-3, 0.05)
    assert rates["head.bias"] == (1e-3, 0.0)
    # Norm and head share the last layer; embeddings are layer 0.
    for block in range(depth):
        assert rates[f"blocks.{block}.attn.qkv.weight"] == (pytest.approx(1e-3 * 0.65 ** (depth - block)), 0.05)
        assert rates[f"blocks.{block}.norm1.weight"][1] == 0.0
    lowest = pytest.approx(1e-3 * 0.65 ** (depth + 1))
    assert rates["patch_embed.proj.weight"] == (lowest, 0.05)
    assert rates["pos_embed"] == (lowest, 0.0)


def test_a_second_network_decays_too() -> None:
    run = new_run(**VIT, method="lff")
    assert by_name(run, run.method.second) == expected(run.method.second)


def test_a_stage_of_the_head_alone_and_own_parameters_of_the_loss() -> None:
    run = new_run(**VIT, method="center:centers=trained", loss_lr=0.5)
    own = [group for group in run.optimizer.param_groups if group["initial_lr"] == 0.5]
    assert [(group["weight_decay"], len(group["params"])) for group in own] == [(0.0, 1)]
    run = new_run(**VIT | {"model": "timm:test_vit:frozen=yes"})
    assert {name: rate for name, (rate, _) in by_name(run, run.model).items()} == {
        "module.head.weight": 1e-3,
        "module.head.bias": 1e-3,
    }


def test_it_needs_a_model_with_layers() -> None:
    with pytest.raises(ValueError, match=r"layer_decay=0\.65 .*timm:NAME; mlp has none"):
        new_run(**VIT | {"model": "mlp"})


@pytest.mark.parametrize("method", ["mr2", "crt"])
def test_an_interruption_changes_nothing(method: str, tmp_path: Path) -> None:
    settings = VIT | {"method": method, "ema_decay": 0.9, "audit": False}
    whole = trained(tmp_path / "whole", **settings)
    with stopped_after(4):
        trained(tmp_path / "parts", **settings)
    parts = trained(tmp_path / "parts", **settings)
    assert metrics(whole) == metrics(parts)
    ours, theirs = load_file(whole.model), load_file(parts.model)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
