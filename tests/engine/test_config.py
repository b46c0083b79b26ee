from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from classgap.engine.config import TrainConfig
from classgap.engine.config_file import checked_settings, read_settings, write_config


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"epochs": 0}, "epochs must be an integer >= 1, got 0"),
        ({"lr": -1.0}, "lr must be a finite number > 0"),
        ({"lr": 1e39}, r"lr must be at most 1e\+30, got 1e\+39"),
        ({"loss_lr": 1e39}, "loss_lr must be at most"),
        ({"weight_decay": 1e39}, "weight_decay must be at most"),
        ({"epochs": 3, "steps": 4}, "epochs and steps cannot both be given"),
        ({"warmup_epochs": 1.0, "warmup_steps": 4}, "warmup_epochs and warmup_steps cannot both"),
        ({"monitor": "hard"}, "val_fraction"),
        ({"val_fraction": 1.0}, r"val_fraction must be in \[0, 1\)"),
        ({"milestones": (3.0, 2.0)}, "milestones must be above 0 and in rising order"),
        ({"micro_batches": 0}, "micro_batches"),
    ],
)
def test_what_cannot_be_is_refused_by_name(settings: dict, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        TrainConfig(data="digits", **settings)


def test_yaml_round_trip(tmp_path: Path) -> None:
    config = TrainConfig(data="digits", lr=1e-3, milestones=(0.5, 3.0), out=Path("a b"), nesterov=True)
    write_config(config, tmp_path / "config.yaml")
    assert TrainConfig(**read_settings(tmp_path / "config.yaml")) == config
    assert set(yaml.safe_load((tmp_path / "config.yaml").read_text())) == {field.name for field in fields(TrainConfig)}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"epoch": 3}, "there is no setting 'epoch'; did you mean 'epochs'?"),
        ({"epochs": "many"}, "epochs must be int; got 'many'"),
        ({"epochs": 2.5}, "epochs must be int; got 2.5"),
        ({"epochs": True}, "epochs must be int; got True"),
        ({"optimizer": "sdg"}, "optimizer must be one of sgd, adamw; got 'sdg'"),
        ({"milestones": 3}, "milestones must be a list; got 3"),
        ({"nesterov": "yes please"}, "nesterov must be bool"),
        ({"data": 3}, "data must be str; got 3"),
    ],
)
def test_wrong_files_are_refused_by_name(found: dict, told: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(found))
    with pytest.raises(ValueError, match=r"wrong\.yaml: ") as refusal:
        read_settings(path)
    assert told in str(refusal.value)


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [", "a: !!python/object:os.system {}"])
def test_what_is_no_mapping_is_refused_and_nothing_is_run(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"c\.yaml"):
        read_settings(tmp_path / "c.yaml")
    with pytest.raises(ValueError, match="does not exist"):
        read_settings(tmp_path / "none.yaml")


def test_yaml_numbers_without_a_point_are_numbers() -> None:
    assert checked_settings(yaml.safe_load("lr: 1e-3\nclip_grad: 1\nout: null")) == {
        "lr": 1e-3,
        "clip_grad": 1.0,
        "out": None,
    }
