"""`cg.load_run`: the weights, the preparation and the classes of a run, whatever trained it."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from predict_cases import write_features, write_photos
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import classgap as cg
from classgap.cli import main
from classgap.engine import TrainConfig
from classgap.engine.train import train
from classgap.inference import LoadedRun

SMALL: dict[str, Any] = {"data": "digits", "model": "mlp:width=16", "epochs": 2, "batch_size": 64, "device": "cpu"}


def trained(out: Path, **settings: Any) -> Path:
    return train(TrainConfig(**(SMALL | {"audit": False, "out": out} | settings)), quiet=True).run_dir


def stored(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "predictions.safetensors")


SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "new head": {"method": "lgm:variances=learned"},
    "cosine head": {"method": "ldam"},
    "scaled head": {"method": "lws"},
    "changed weights": {"method": "tau-norm", "val_fraction": 0.2},
    "changed bias": {"method": "post-hoc-logit-adjustment", "data": "digits:imbalance=10"},
    "best epoch": {"val_fraction": 0.2, "monitor": "worst", "epochs": 4},
    "moving average": {"ema_decay": 0.9},
    "interpolated": {"wise_ft_alpha": 0.5},
    "bf16": {"precision": "bf16"},
    "signals": {"data": "mnist1d:n_train=100:n_test=60", "model": "conv1d"},
    "crops": {"data": "digits", "augment": "rrc:size=6"},
    "timm": {"model": "timm:resnet18:frozen=yes", "data": "digits:test_fraction=0.05:fraction=0.05", "epochs": 1},
    "channels last": {"model": "resnet20", "channels_last": True, "data": "digits:fraction=0.2", "epochs": 1},
}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_a_loaded_run_predicts_what_the_run_stored(tmp_path: Path, name: str) -> None:
    path = trained(tmp_path / "run", **SETTINGS[name])
    run = cg.load_run(path, device="cpu")
    test = cg.data.load(run.config.data).test
    result = run.predict(test.inputs[torch.arange(len(test))])
    assert torch.equal(result.logits, stored(path)["logits"])
    assert result.labels == tuple(run.class_names[k] for k in stored(path)["logits"].argmax(dim=1))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("photos")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLASSGAP_CACHE", str(base / "cache"))
        write_photos(base / "data")
        trained(base / "run", data=f"folder:{base / 'data'}:size=14", model="linear", augment="rrc:size=12")
    return base


def by_hook(run: LoadedRun, layer: str, inputs: torch.Tensor) -> torch.Tensor:
    """Return the output of a layer for all inputs at once, with a hook by hand."""
    seen: list[torch.Tensor] = []
    handle = run.model.get_submodule(layer).register_forward_hook(lambda _, args, output: seen.append(output))
    run.model(run.preprocessing.prepare(inputs))
    handle.remove()
    return seen[0]


def test_features_of_earlier_blocks_match_a_hook(tmp_path: Path) -> None:
    path = trained(tmp_path / "run", model="resnet20:width=4", data="digits:fraction=0.1", epochs=1)
    run = cg.load_run(path, device="cpu")
    test = cg.data.load(run.config.data).test
    inputs = test.inputs[torch.arange(len(test))]
    for block, width in (("layer1", 4), ("layer2", 8), ("layer3.2.conv1", 16)):
        maps = by_hook(run, block, inputs)
        features = run.features(test, layer=block)
        assert features.shape == (len(test), width)
        torch.testing.assert_close(features, maps.mean(dim=(2, 3)), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(run.features(inputs, layer=block, pool=False), maps, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(run.features(test), stored(path)["features"].float(), rtol=2e-3, atol=1e-3)
    assert torch.equal(run.predict(test).logits, stored(path)["logits"])
    with pytest.raises(ValueError, match=r"layer='layer9' is not part of CifarResNet.*layer1"):
        run.features(test, layer="layer9")
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in run.model.modules())


def test_features_of_signals_are_averaged_over_time(tmp_path: Path) -> None:
    run = cg.load_run(trained(tmp_path / "run", **SETTINGS["signals"], epochs=1), device="cpu")
    test = cg.data.load(run.config.data).test
    maps = by_hook(run, "3", test.inputs[torch.arange(len(test))])
    torch.testing.assert_close(run.features(test, layer="3"), maps.mean(dim=2), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"shape \(1, 40\), got .* \(1, 8, 8\)"):
        run.features(cg.data.load("digits").test)


def test_files_describe_the_model_without_its_data(photos: Path) -> None:
    facts = json.loads((photos / "run" / "preprocessing.json").read_text())
    assert facts["resize"] == [14, 14]
    assert (facts["crop"], facts["shape"], facts["channels"], facts["value_range"]) == (12, [3, 12, 12], 3, [0, 1])
    pixels = torch.stack([_read(file) for file in sorted((photos / "data" / "train").rglob("*.png"))]).double() / 255
    np.testing.assert_allclose(facts["mean"], pixels.mean(dim=(0, 2, 3)), atol=1e-9)
    np.testing.assert_allclose(facts["std"], pixels.std(dim=(0, 2, 3), unbiased=False), atol=1e-9)
    with safe_open(photos / "run" / "checkpoints" / "model.safetensors", "pt") as file:
        metadata = file.metadata()
    assert json.loads(metadata["class_names"]) == ["cat", "cat-2", "dog"]
    assert json.loads(metadata["network"])["model"] == "linear"


def _read(path: Path) -> torch.Tensor:
    """Read an image as training does, written independently of it: cover 14 × 14, crop the center."""
    image = Image.open(path).convert("RGB")
    side, (width, height) = 14, image.size
    short = min(width, height)
    left, top = (width - short) / 2, (height - short) / 2
    image = image.resize((side, side), Image.Resampling.BICUBIC, box=(left, top, left + short, top + short))
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def test_every_kind_of_image_gives_the_same_prediction(photos: Path) -> None:
    run = cg.load_run(photos / "run", device="cpu")
    file = photos / "data" / "test" / "dog" / "0.png"
    image, pixels = Image.open(file), _read(file)
    mean, std = (torch.tensor(each)[:, None, None] for each in (run.preprocessing.mean, run.preprocessing.std))
    expected = (pixels[:, 1:-1, 1:-1] / 255 - mean) / std
    for each in (
        image,
        file,
        str(file),
        np.asarray(image),
        pixels,
        np.asarray(image) / 255,
        pixels.float() / 255,
        pixels.permute(1, 2, 0).numpy(),
    ):
        torch.testing.assert_close(run.preprocessing(each), expected, atol=1e-5, rtol=0)
    logits = run.model(expected[None])
    for inputs in (
        image,
        [image],
        file,
        [str(file)],
        iter([image]),
        np.array([str(file)]),
        np.asarray(image),
        np.asarray(image)[None],
        np.asarray(image)[None] / 255,
        torch.from_numpy(np.array(image)).permute(2, 0, 1),
        pixels,
        pixels[None],
        pixels[None].float() / 255,
    ):
        result = run.predict(inputs)
        torch.testing.assert_close(result.logits, logits, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(result.probabilities, logits.softmax(dim=1), atol=1e-4, rtol=1e-4)


def test_gray_and_transparent_images_become_rgb(photos: Path, tmp_path: Path) -> None:
    run = cg.load_run(photos / "run", device="cpu")
    image = Image.open(photos / "data" / "test" / "dog" / "1.png")
    gray = np.asarray(image.convert("L"))
    expected = run.preprocessing(np.stack([gray, gray, gray], axis=2))
    Image.fromarray(gray).save(tmp_path / "gray.png")
    Image.fromarray(gray.astype(np.uint16) * 257).save(tmp_path / "gray16.png")
    for each in (gray, gray[..., None], gray / 255, tmp_path / "gray.png", tmp_path / "gray16.png"):
        assert torch.equal(run.preprocessing(each), expected)
    opaque = np.asarray(image.convert("RGBA"))
    for each in (opaque, opaque / 255, image.convert("RGBA")):
        assert torch.equal(run.preprocessing(each), run.preprocessing(image))


def test_a_folder_gives_its_images_with_their_names(photos: Path) -> None:
    run = cg.load_run(photos / "run", device="cpu")
    folder = photos / "data" / "test" / "dog"
    files = sorted(map(str, folder.iterdir()))
    result = run.predict(folder)
    assert result.filenames == tuple(files)
    assert torch.equal(result.logits, run.predict([Image.open(file) for file in files]).logits)
    assert run.predict([Image.open(files[0])]).filenames is None
    assert len(run.features(str(folder))) == len(files)


def test_turned_photographs_are_turned_back(photos: Path, tmp_path: Path) -> None:
    run = cg.load_run(photos / "run", device="cpu")
    upright = Image.open(photos / "data" / "test" / "cat" / "1.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # stored turned by 90 degrees
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.png", exif=exif)
    for turned in (tmp_path / "turned.png", Image.open(tmp_path / "turned.png")):
        assert torch.equal(run.preprocessing(turned), run.preprocessing(upright))


BAD_IMAGES = {
    "normalized": (np.full((1, 3, 14, 14), -1.0), "in [0, 1]"),
    "normalized in another size": (np.full((1, 3, 9, 9), -1.0), "in [0, 1]"),
    "integers": (np.full((1, 9, 9, 3), 200), "int64 values from 200 to 200"),
    "rows of pixels": (np.zeros((2, 14 * 14 * 3)), "(2, 588)"),
    "nothing": (None, "NoneType"),
    "two channels": (np.zeros((1, 14, 14, 2), dtype=np.uint8), "(14, 14, 2)"),
    "no samples": ([], "at least one"),
    "no image": ([object()], "object"),
    "nan": (np.full((1, 3, 14, 14), np.nan), "finite"),
    "missing": (["nothing.png"], "nothing.png"),
}


@pytest.mark.parametrize("name", list(BAD_IMAGES))
def test_bad_images_are_named(photos: Path, name: str) -> None:
    inputs, fact = BAD_IMAGES[name]
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the fact is checked below
        cg.load_run(photos / "run", device="cpu").predict(inputs)
    assert fact in str(error.value)


def test_runs_of_earlier_versions_derive_their_preparation(photos: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(photos / "run", old)
    for name in ("preprocessing.json", "checksums.json"):
        (old / name).unlink()
    weights = old / "checkpoints" / "model.safetensors"
    save_file(load_file(weights), weights)  # without metadata
    now, before = cg.load_run(photos / "run", device="cpu"), cg.load_run(old, device="cpu")
    assert now.preprocessing == before.preprocessing
    assert now.class_names == before.class_names
    files = sorted((photos / "data" / "test").rglob("*.png"))
    assert torch.equal(now.predict(files).logits, before.predict(files).logits)
    config = (old / "config.yaml").read_text()
    (old / "config.yaml").write_text(config.replace(str(photos / "data"), "gone"))
    with pytest.raises(ValueError, match=r"preprocessing\.json"):
        cg.load_run(old)


def test_unfinished_runs_and_other_folders_are_rejected(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a run directory"):
        cg.load_run(tmp_path)
    shutil.copytree(photos / "run", tmp_path / "run")
    (tmp_path / "run" / "predictions.safetensors").unlink()
    metrics = tmp_path / "run" / "metrics.jsonl"
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(ValueError, match="not finished"):
        cg.load_run(tmp_path / "run")


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("probe")
    write_features(base / "features.npz")
    trained(base / "run", data=f"features:{base / 'features.npz'}", val_fraction=0.3, epochs=5)
    return base


def _offsets(names: tuple[str, ...], inputs: str = "logits") -> cg.Fix:
    from classgap.remedies.modules import ClassAffine

    offsets = torch.linspace(0, 3, len(names))
    return cg.Fix("class-offsets", inputs, [ClassAffine(torch.ones(len(names)), offsets)], names)


def test_a_fix_changes_the_scores_only_if_asked(probe: Path, tmp_path: Path) -> None:
    run = cg.load_run(probe / "run", device="cpu")
    inputs = np.load(probe / "features.npz")["test_features"]
    fix = _offsets(run.class_names)
    plain = run.predict(inputs)
    assert torch.equal(plain.logits, stored(probe / "run")["logits"])
    fixed = run.predict(inputs, fix=fix)
    expected = (plain.logits + torch.linspace(0, 3, 4)).softmax(dim=1)
    torch.testing.assert_close(fixed.probabilities, expected)
    assert fixed.labels != plain.labels
    fix.save(tmp_path / "fixed")
    words = [
        "predict",
        probe / "run",
        probe / "features.npz",
        "--fix",
        tmp_path / "fixed",
        "--out",
        tmp_path / "out.npz",
    ]
    assert main([*map(str, words), "--device", "cpu"]) == 0
    assert np.array_equal(np.load(tmp_path / "out.npz")["logits"], fixed.logits.numpy())


def test_scores_by_expected_cost_have_no_probabilities(probe: Path) -> None:
    from classgap.remedies.modules import ExpectedCost

    run = cg.load_run(probe / "run", device="cpu")
    fix = cg.Fix("expected-cost", "logits", [ExpectedCost(1 - torch.eye(4))], run.class_names)
    result = run.predict(np.load(probe / "features.npz")["test_features"], fix=fix)
    assert result.probabilities is None
    assert torch.equal(result.predictions, stored(probe / "run")["logits"].argmax(dim=1))
    assert torch.equal(result.top_k(1)[1][:, 0], result.logits.max(dim=1).values)


def test_a_fix_of_the_features_or_of_the_inputs_gets_them(probe: Path) -> None:
    from classgap.remedies.modules import Head
    from classgap.remedies.networks import Network

    run = cg.load_run(probe / "run", device="cpu")
    inputs = np.load(probe / "features.npz")["test_features"]
    expected = run.predict(inputs).logits
    head = run.model[-1]
    twice = Head(2 * head.weight.detach(), 2 * head.bias.detach())
    by_features = run.predict(inputs, fix=cg.Fix("head", "features", [twice], run.class_names))
    torch.testing.assert_close(by_features.logits, 2 * expected)
    network = Network(run.model, "mlp:width=16", 4, (6,))
    by_inputs = run.predict(inputs, fix=cg.Fix("network", "samples", [network], run.class_names))
    torch.testing.assert_close(by_inputs.logits, expected)


def test_fixes_of_other_models_are_rejected(probe: Path) -> None:
    run = cg.load_run(probe / "run", device="cpu")
    with pytest.raises(ValueError, match="other classes"):
        run.predict(np.zeros((1, 6)), fix=_offsets(("a", "b", "c", "d")))
    ensemble = cg.Fix("ensemble", "ensemble", [], run.class_names, members=("x", "y"))
    with pytest.raises(ValueError, match="2 models"):
        run.predict(np.zeros((1, 6)), fix=ensemble)


def test_validation_arrays_serve_the_monitor(tmp_path: Path) -> None:
    write_features(tmp_path / "features.npz", val=True)
    data = f"features:{tmp_path / 'features.npz'}"
    path = trained(tmp_path / "run", data=data, model="linear", monitor="worst", epochs=4)
    arrays = np.load(tmp_path / "features.npz")
    held_out = load_file(path / "val_predictions.safetensors")
    assert np.array_equal(held_out["targets"].numpy(), arrays["val_targets"])
    result = cg.load_run(path, device="cpu").predict(arrays["val_features"])
    assert torch.equal(result.logits, held_out["logits"])
    *epochs, final = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    values = [(line["val_worst"], line["val_accuracy"]) for line in epochs]
    assert final["chosen_epoch"] == 1 + values.index(max(values))
    correct = result.predictions.numpy() == arrays["val_targets"]
    assert max(values)[1] == pytest.approx(correct.mean())
    plain = trained(tmp_path / "plain", data=data, model="linear", epochs=4)
    first, second = (load_file(each / "checkpoints" / "model.safetensors") for each in (path, plain))
    assert (final["chosen_epoch"] == 4) == all(torch.equal(first[name], second[name]) for name in first)
    run = ["predict", path, "--split", "val", "--out", tmp_path / "val.npz", "--device", "cpu"]
    assert main([*map(str, run)]) == 0
    assert np.array_equal(np.load(tmp_path / "val.npz")["logits"], held_out["logits"].numpy())
