"""Runs on datasets of Hugging Face ``datasets`` that are saved to disk."""

from pathlib import Path

import datasets
import numpy as np
import pytest
from PIL import Image
from predict_cases import figures, run
from safetensors.torch import load_file

NAMES = ["cat", "dog", "fox"]


def rows(kind: str, count: int, seed: int) -> datasets.Dataset:
    rng, classes = np.random.default_rng(seed), [k % 3 for k in range(count)]
    if kind == "images":
        pixels = rng.integers(0, 200, (count, 10, 12, 3), dtype=np.uint8)
        pixels[np.arange(count), :, :, classes] += 55
        columns = {"image": [Image.fromarray(each) for each in pixels]}
    else:
        columns = {"height": rng.normal(classes, 1).tolist(), "color": [("red", "blue")[k % 2] for k in range(count)]}
    made = datasets.Dataset.from_dict({**columns, "label": classes})
    return made.cast_column("label", datasets.ClassLabel(names=NAMES))


@pytest.mark.parametrize("kind", ["images", "table"])
def test_train_predict_audit_gives_the_figures_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.chdir(tmp_path)
    datasets.DatasetDict({"train": rows(kind, 45, 0), "test": rows(kind, 24, 1)}).save_to_disk("saved")
    small = ("--epochs", "4", "--device", "cpu", "--batch-size", "16", "--augment", "none")
    run("train", "--data", "hf:saved", "--model", "mlp:width=16", "--out", "run", *small)
    for words in ((), ("saved",), ("hf:saved",)):
        run("predict", "run", *words, "--out", "new.npz", "--device", "cpu")
        run("audit", "new.npz", "--json", "audit.json")
        assert figures(Path("audit.json")) == figures(Path("run", "audit.json"))
        own = load_file("run/predictions.safetensors")
        assert np.array_equal(np.load("new.npz")["logits"], own["logits"].numpy())
