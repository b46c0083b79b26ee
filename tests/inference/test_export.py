"""`classgap export`: an ONNX model that gives torch's logits, and a section of a model card."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image
from predict_cases import CLASSES, run, write_features, write_photos
from safetensors.torch import load_file

import classgap as cg
from classgap.cli import main
from classgap.inference.export import _check, export_onnx
from classgap.report.model_card import BEGIN, END

SMALL = ("--epochs", "5", "--device", "cpu", "--batch-size", "16", "--no-audit")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("export")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLASSGAP_CACHE", str(base / "cache"))
        write_photos(base / "photos", test=4)
        write_features(base / "features.npz")
        run(
            "train",
            "--data",
            f"folder:{base / 'photos'}:size=12",
            "--model",
            "resnet20",
            "--out",
            base / "images",
            *SMALL,
        )
        for seed in ("0", "1"):
            out = base / f"vectors{seed}"
            run("train", "--data", f"features:{base / 'features.npz'}", "--seed", seed, "--out", out, *SMALL)
    return base


def test_onnx_gives_the_logits_of_the_run_from_its_metadata_alone(place: Path, tmp_path: Path) -> None:
    run("export", place / "images", "--onnx", tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    metadata = session.get_modelmeta().custom_metadata_map
    assert tuple(json.loads(metadata["class_names"])) == CLASSES
    facts = json.loads(metadata["preprocessing"])
    inputs = []
    for name in CLASSES:
        for file in sorted((place / "photos" / "test" / name).iterdir()):
            image = Image.open(file)
            width, height = image.size
            short = min(width, height)
            left, top = (width - short) / 2, (height - short) / 2
            image = image.resize(
                facts["resize"][::-1], Image.Resampling.BICUBIC, (left, top, left + short, top + short)
            )
            pixels = np.asarray(image).astype(np.float32) / 255
            inputs.append(((pixels - facts["mean"]) / facts["std"]).transpose(2, 0, 1))
    expected = load_file(place / "images" / "predictions.safetensors")["logits"].numpy()
    for rows in (slice(0, 1), slice(0, 12)):  # the batch size is free
        (logits,) = session.run(["logits"], {"inputs": np.stack(inputs[rows]).astype(np.float32)})
        np.testing.assert_allclose(logits, expected[rows], atol=1e-3, rtol=1e-3)


def test_an_export_that_differs_from_torch_is_rejected(place: Path) -> None:
    first, second = (cg.load_run(place / f"vectors{seed}", device="cpu") for seed in (0, 1))
    content = export_onnx(first)
    _check(first, content)
    with pytest.raises(ValueError, match="logits of the ONNX model"):
        _check(second, content)


def test_the_card_lists_every_class_as_measured(place: Path, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: mit\n---\n# Mine\n")
    run("export", place / "vectors0", "--hub-card", card)
    text = card.read_text()
    assert text.startswith("---\nlicense: mit\n---\n# Mine\n")
    assert str(place) not in text  # a card is public
    own = load_file(place / "vectors0" / "predictions.safetensors")
    correct = own["logits"].argmax(dim=1) == own["targets"]
    for k, name in enumerate(("ant", "bee", "cow", "doe")):
        (row,) = (line for line in text.splitlines() if line.startswith(f"| {name} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        members = own["targets"] == k
        assert cells[1] == f"{100 * float(correct[members].double().mean()):.1f} %"
        assert cells[3] == str(int(members.sum()))
    assert f"{len(correct)} test samples" in text
    run("export", place / "vectors1", "--hub-card", card)  # replaces the section
    assert card.read_text().count(BEGIN) == card.read_text().count(END) == 1
    assert card.read_text() != text


def test_if_one_output_fails_none_is_written(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = tmp_path / "card.md"
    card.write_bytes(b"\xff\xfe")
    words = ["export", str(place / "vectors0"), "--onnx", str(tmp_path / "model.onnx"), "--hub-card", str(card)]
    assert main(words) == 2
    assert "UTF-8" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["card.md"]
    assert card.read_bytes() == b"\xff\xfe"


class Unsupported(torch.nn.Module):
    """A network whose path depends on its inputs."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs = inputs[:, :4]
        while bool((outputs.abs().sum() > 1).item()):
            outputs = outputs / 2
        return outputs


def test_a_network_that_cannot_be_exported_is_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = replace(cg.load_run(place / "vectors0", device="cpu"), model=Unsupported())
    with pytest.raises(ValueError, match="ONNX") as error:
        export_onnx(loaded)
    assert "\n" not in str(error.value)
    assert capsys.readouterr() == ("", "")


def test_a_missing_package_names_the_extra(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert main(["export", str(place / "vectors0"), "--onnx", str(tmp_path / "model.onnx")]) == 2
    err = capsys.readouterr().err
    assert "onnxscript" in err
    assert "classgap[onnx]" in err


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ([], "--hub-card"),
        (["--onnx", "model.bin"], ".onnx"),
        (["--onnx", "nowhere/model.onnx"], "does not exist"),
    ],
)
def test_arguments_are_checked_first(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], fact: str
) -> None:
    assert main(["export", str(place / "vectors0"), *words]) == 2
    assert fact in capsys.readouterr().err
