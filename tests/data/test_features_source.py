import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from classgap.data import load


def arrays(names: tuple[str, str] = ("features", "targets")) -> dict[str, np.ndarray]:
    made = np.random.default_rng(0)
    return {
        f"train_{names[0]}": made.normal(size=(12, 5)).astype(np.float16),
        f"train_{names[1]}": np.arange(12) % 3,
        f"test_{names[0]}": made.normal(size=(6, 5)).astype(np.float16),
        f"test_{names[1]}": np.arange(6) % 3,
    }


@pytest.mark.parametrize("names", [("features", "targets"), ("x", "y")])
def test_npz(tmp_path: Path, names: tuple[str, str]) -> None:
    made = arrays(names)
    np.savez(tmp_path / "f.npz", **made, classes=np.array(["a", "b", "c"]), val_x=np.zeros(3))
    data = load(f"features:{tmp_path / 'f.npz'}")
    assert (data.kind, data.shape, data.class_names) == ("vector", (5,), ("a", "b", "c"))
    assert data.train.inputs[torch.arange(12)].tolist() == made[f"train_{names[0]}"].astype(np.float32).tolist()
    assert data.test.targets.tolist() == made[f"test_{names[1]}"].tolist()
    assert data.notes == (f"{tmp_path / 'f.npz'}: ignored val_x.",)


def test_safetensors(tmp_path: Path) -> None:
    tensors = {name: torch.from_numpy(array) for name, array in arrays().items()}
    tensors["train_features"] = tensors["train_features"].bfloat16()
    path = tmp_path / "f.safetensors"
    save_file(tensors, path, metadata={"class_names": json.dumps(["a", "b", "ç"])})
    data = load(f"features:{path}")
    assert data.class_names == ("a", "b", "ç")
    assert torch.equal(data.train.inputs[torch.arange(12)], tensors["train_features"].float())


def test_a_test_split_is_drawn_from_one_split(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", features=np.arange(40.0).reshape(20, 2), targets=np.arange(20) % 2)
    data = load(f"features:{tmp_path / 'f.npz'}:test_fraction=0.3")
    assert data.train_counts.tolist() == [7, 7]
    assert data.test.class_counts(2).tolist() == [3, 3]
    assert data.class_names == ("0", "1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_targets": None}, r"train_targets or .*train_features \(12, 5\)"),
        ({"train_features": np.zeros((12, 5, 2))}, r"train_features must .*float64 \(12, 5, 2\)"),
        ({"train_features": np.full((12, 5), np.nan)}, "NaN or infinite values in 12 rows"),
        ({"train_targets": np.zeros(11, int)}, r"train_targets must .*\(12,\), got"),
        ({"train_targets": np.full(12, -1)}, "train_targets must be nonnegative"),
        ({"test_features": np.zeros((6, 4))}, "5 training features and 4 test features"),
        ({"class_names": np.array(["a"])}, "1 class_names, but a target of 2"),
        ({"train_features": np.array([{}] * 12)}, "cannot read"),
    ],
)
def test_invalid_files_raise(tmp_path: Path, change: dict[str, np.ndarray | None], message: str) -> None:
    made = {name: array for name, array in (arrays() | change).items() if array is not None}
    np.savez(tmp_path / "f.npz", **made)
    with pytest.raises(ValueError, match=message):
        load(f"features:{tmp_path / 'f.npz'}")


def test_truncated_files_raise(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", **arrays())
    (tmp_path / "f.npz").write_bytes((tmp_path / "f.npz").read_bytes()[:200])
    with pytest.raises(ValueError, match="cannot read"):
        load(f"features:{tmp_path / 'f.npz'}")


def test_validation_arrays_are_validation_samples(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "f.npz"
    arrays = {f"{split}_features": rng.normal(size=(8, 3)) for split in ("train", "val", "test")}
    arrays |= {f"{split}_targets": np.arange(8) % 2 for split in ("train", "val", "test")}
    arrays["val_targets"] = np.arange(8) % 3  # a class of its own
    np.savez(path, **arrays)
    data = load(f"features:{path}")
    assert data.validation is not None
    assert data.num_classes == 3
    assert data.notes == ()
    got = data.validation.inputs[torch.arange(8)]
    assert np.array_equal(got.numpy(), arrays["val_features"].astype(np.float32))
    assert load(f"features:{path}:test_split=val").validation is None
    np.savez(path, **arrays | {"val_features": np.zeros((8, 4))})
    with pytest.raises(ValueError, match="4 validation features"):
        load(f"features:{path}")


@pytest.mark.parametrize("names", [("X_train", "y_train", "X_test", "y_test"), ("X", "y"), ("data", "target")])
def test_names_of_scikit_learn(names: tuple[str, ...], tmp_path: Path) -> None:
    features, targets = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 4
    np.savez(tmp_path / "f.npz", **dict(zip(names, (features, targets) * 2, strict=False)))
    data = load(f"features:{tmp_path}/f.npz")
    assert data.shape == (5,)
    assert len(data.train) == (40 if len(names) == 4 else 32)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_missing_arrays_are_listed_with_all_shapes(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"f.{suffix}"
    arrays = {"points": np.zeros((40, 5)), "train_y": np.zeros(40, dtype=int)}
    if suffix == "npz":
        np.savez_compressed(path, **arrays)
    else:
        save_file({name: torch.from_numpy(array) for name, array in arrays.items()}, path)
    with pytest.raises(ValueError, match=r"needs an array .* has points \(40, 5\), train_y \(40,\)\.$"):
        load(f"features:{path}")
