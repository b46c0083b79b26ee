import inspect
import math
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from classgap.engine.config import TrainConfig, parse_settings, read_settings, write_config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs .* 1, got 0"),
        ({"epochs": True}, "epochs .*got True"),
        ({"lr": -1.0}, r"lr .* 0, got -1\.0"),
        ({"lr": 1e39}, r"lr .* 1e\+30, got 1e\+39"),
        ({"loss_lr": 1e39}, r"loss_lr .* 1e\+30"),
        ({"weight_decay": 1e39}, r"weight_decay .* 1e\+30"),
        ({"epochs": 3, "max_steps": 4}, "epochs and max_steps .*3 and 4"),
        ({"warmup_epochs": 1.0, "warmup_steps": 4}, "warmup_epochs and warmup_steps"),
        ({"warmup_steps": 4, "warmup_start_factor": 0.0}, r"warmup_start_factor .*\(0, 1\], got 0\.0"),
        ({"warmup_start_factor": 0.3}, r"warmup_start_factor=0\.3 .*set warmup_epochs"),
        ({"layer_decay": 0.0}, r"layer_decay .*\(0, 1\], got 0\.0"),
        ({"layer_decay": 1.5}, r"layer_decay .*got 1\.5"),
        ({"lr": 0.1, "min_lr": 0.2}, r"min_lr .*at most lr = 0\.1, got 0\.2"),
        ({"min_lr": -1e-6}, "min_lr .*got -1e-06"),
        ({"min_lr": 1e-6, "schedule": "step"}, "min_lr=1e-06 .*cosine, got step"),
        ({"val_fraction": 1.0}, r"val_fraction .*got 1\.0"),
        ({"ema_decay": 0.0}, r"ema_decay .*> 0, got 0\.0"),
        ({"ema_decay": 1.0}, r"ema_decay .*got 1\.0"),
        ({"swa_start": 1.0}, r"swa_start .*got 1\.0"),
        ({"swa_start": 0.5, "swa_lr": 0.0}, r"swa_lr .*> 0, got 0\.0"),
        ({"swa_lr": 0.1}, r"swa_lr=0\.1 .*set swa_start"),
        ({"ema_decay": 0.9, "swa_start": 0.5}, r"ema_decay and swa_start .*0\.9 and 0\.5"),
        ({"val_fraction": 0.1, "split_seed": -1}, "split_seed .*got -1"),
        ({"val_fraction": 0.2, "val_fold": 5}, r"val_fold .*below 5.*got 5"),
        ({"val_fraction": 0.2, "val_fold": -1}, "val_fold .*got -1"),
        ({"val_fold": 1}, r"val_fold .*val_fraction=0\.0; got 1"),
        ({"wise_ft_alpha": 1.5}, r"wise_ft_alpha .*got 1\.5"),
        ({"milestones": (3.0, 2.0)}, r"milestones .*\(3\.0, 2\.0\)"),
        ({"milestones": (math.nan,)}, "milestones .*got nan"),
        ({"milestones": (0.5, math.inf)}, "milestones .*got inf"),
        ({"milestones": (-1.0,)}, r"milestones .* 0, got -1\.0"),
        ({"micro_batches": 0}, "micro_batches"),
        ({"optimizer": "adam"}, "optimizer .*'adamw'.*got 'adam'"),
        ({"precision": "fp8"}, "precision .*'bf16'.*got 'fp8'"),
    ],
)
def test_invalid_settings_are_named(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainConfig(data="digits", **settings)


def test_yaml_round_trip(tmp_path: Path) -> None:
    config = TrainConfig(data="digits", lr=1e-3, milestones=(0.5, 3.0), out=Path("a b"), nesterov=True)
    write_config(config, tmp_path / "config.yaml")
    assert TrainConfig(**read_settings(tmp_path / "config.yaml")) == config
    assert set(yaml.safe_load((tmp_path / "config.yaml").read_text())) == {field.name for field in fields(TrainConfig)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epoch": 3}, "'epoch' (value 3); did you mean 'epochs'?"),
        ({"epochs": 3, "wheels": 4}, "'wheels' (value 4)"),
        ({"epochs": "many"}, "epochs must be int or none; got 'many'"),
        ({"epochs": 2.5}, "epochs must be int or none; got 2.5"),
        ({"epochs": True}, "epochs must be int or none; got True"),
        ({"optimizer": "sdg"}, "'sgd', 'adamw'; got 'sdg'"),
        ({"milestones": 3}, "milestones must be a list of float; got 3"),
        ({"nesterov": "yes please"}, "nesterov must be bool"),
        ({"data": 3}, "data must be str; got 3"),
        ({"lr": True}, "lr must be float or none; got True"),
        ({"out": 3}, "out must be Path or none; got 3"),
    ],
)
def test_invalid_files_are_rejected_with_key_and_value(settings: dict, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(settings))
    with pytest.raises(ValueError, match=r"wrong\.yaml: ") as error:
        read_settings(path)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["epochs: 3\nlr: 1\nepochs: 4\n", "weight-decay: 0\nweight_decay: 1\n"])
def test_a_setting_that_is_set_twice_is_rejected(text: str, tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"twice\.yaml sets (epochs|weight_decay) more"):
        read_settings(tmp_path / "twice.yaml")


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [", "a: !!python/object:os.system {}"])
def test_files_without_a_mapping_are_rejected_and_execute_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"c\.yaml"):
        read_settings(tmp_path / "c.yaml")
    with pytest.raises(ValueError, match="does not exist"):
        read_settings(tmp_path / "none.yaml")


def test_yaml_numbers_without_a_point_are_numbers() -> None:
    assert parse_settings(yaml.safe_load("lr: 1e-3\nclip_grad: 1\nout: null")) == {
        "lr": 1e-3,
        "clip_grad": 1.0,
        "out": None,
    }


def test_none_in_yaml_stays_a_name() -> None:
    assert parse_settings(yaml.safe_load("augment: none\nmodel: null")) == {"augment": "none", "model": None}


def test_names_of_other_libraries_lead_to_ours() -> None:
    with pytest.raises(ValueError, match=r"'gradient_accumulation_steps'.*'micro_batches'.*splits"):
        parse_settings({"gradient_accumulation_steps": 4})
    with pytest.raises(TypeError, match=r"'val_split' .*'val_fraction'.*each training class"):
        TrainConfig(data="digits", val_split=0.1)
    with pytest.raises(TypeError, match=r"'epoch' \(value 3\); did you mean 'epochs'"):
        TrainConfig(data="digits", epoch=3)


def test_the_signature_of_the_configuration_lists_its_settings() -> None:
    parameters = inspect.signature(TrainConfig).parameters
    assert [*parameters] == [field.name for field in fields(TrainConfig)]
    assert parameters["lr"].default is None
