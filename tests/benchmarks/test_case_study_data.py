"""The public files of the case studies become the files of their pages, here with excerpts in the same formats."""

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from scripts import load_script

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
# The first lines of imagenetx/model_predictions/base/DINO.csv, which is sorted by class.
DINO = [(293, 0), (2138, 391), (3014, 0), (6697, 0), (10306, 133), (37375, 389), (28158, 0)]


@pytest.fixture(scope="module")
def converter() -> ModuleType:
    return load_script("benchmarks/case_study_data.py")


def write_rows(path: Path, header: str, rows: list[tuple[int, int]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"ILSVRC2012_val_{number:08d}.JPEG,{value},0.5\n" for number, value in rows]
    path.write_text(header + ",more\n" + "".join(lines), encoding="utf-8")


def test_imagenet(converter: ModuleType, tmp_path: Path) -> None:
    imagenetx = tmp_path / "imagenetx"
    labels = imagenetx / "imagenet_x" / "annotations" / "filename_label.csv"
    write_rows(labels, "file_name,label", [(number, 0) for number, _ in DINO])
    for model in ("DINO", "SimCLR"):
        write_rows(imagenetx / "model_predictions" / "base" / f"{model}.csv", "file_name,predicted_class", DINO)
    for name in (
        "original_test_labels/imagenet_val_set_original_labels",
        "cross_validated_predicted_labels/imagenet_val_set_pyx_argmax_predicted_labels",
    ):
        (tmp_path / "label-errors" / name).parent.mkdir(parents=True)
        np.save(tmp_path / "label-errors" / f"{name}.npy", np.arange(5))
    (tmp_path / "reassessed-imagenet").mkdir()
    (tmp_path / "reassessed-imagenet" / "real.json").write_text("[[0], []]")
    converter.convert_imagenet(tmp_path, tmp_path, [f"class {k}" for k in range(1000)])
    found = np.load(tmp_path / "imagenet_val_dino.npz")
    assert list(zip(found["index"], found["predictions"], strict=True)) == sorted(DINO)
    assert found["targets"].tolist() == [0] * len(DINO)
    assert (tmp_path / "imagenet_val_real_labels.json").exists()
    if DATA.exists():  # the excerpt is in the file of the case study
        with np.load(DATA / "real_predictions" / "imagenet_val_dino.npz") as stored:
            predictions = dict(zip(stored["index"].tolist(), stored["predictions"].tolist(), strict=True))
            assert all(predictions[number] == predicted for number, predicted in DINO)


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_names_of_imagenet(converter: ModuleType) -> None:
    pytest.importorskip("timm")
    with np.load(DATA / "real_predictions" / "imagenet_val_dino.npz") as stored:
        assert converter.imagenet_names() == stored["class_names"].tolist()


def test_clinc150(converter: ModuleType, tmp_path: Path) -> None:
    sentences = {"train": [["what time is it", "time"], ["hello", "greeting"]], "val": [["hi", "greeting"]]}
    sentences |= {"test": [["the time", "time"]], "oos_test": [["king of acid", "oos"]]}
    (tmp_path / "data_full.json").write_text(json.dumps(sentences))
    converter.convert_clinc150(tmp_path / "data_full.json", tmp_path, lambda texts: [[len(each)] for each in texts])
    found = np.load(tmp_path / "clinc150_minilm.npz")
    assert found["classes"].tolist() == ["greeting", "time"]
    assert found["train_y"].tolist() == [1, 0]
    assert found["test_x"].dtype == np.float16
    assert found["test_y"].tolist() == [1]
