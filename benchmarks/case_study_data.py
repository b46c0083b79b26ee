"""Convert the public files of the case studies to the files that their pages read.

    python benchmarks/case_study_data.py imagenet REPOSITORIES FOLDER   # clones of the three repositories; needs timm
    python benchmarks/case_study_data.py clinc150 data_full.json FOLDER   # needs sentence-transformers

``REPOSITORIES`` has clones of facebookresearch/imagenetx, cleanlab/label-errors and
google-research/reassessed-imagenet. docs/case-studies says where to get the files.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

MODELS = ("DINO", "SimCLR")
ENCODER = "sentence-transformers/all-MiniLM-L6-v2"


def convert_imagenet(repositories: Path, folder: Path, class_names: Sequence[str]) -> None:
    """Write the predictions of three models and the ReaL labels."""
    imagenetx = repositories / "imagenetx"
    with (imagenetx / "imagenet_x" / "annotations" / "filename_label.csv").open(encoding="utf-8") as file:
        labels = {row["file_name"]: int(row["label"]) for row in csv.DictReader(file)}
    for model in MODELS:
        with (imagenetx / "model_predictions" / "base" / f"{model}.csv").open(encoding="utf-8") as file:
            rows = sorted((row["file_name"], int(row["predicted_class"])) for row in csv.DictReader(file))
        np.savez(
            folder / f"imagenet_val_{model.lower()}.npz",
            index=[int(re.findall(r"\d+", name)[-1]) for name, _ in rows],  # ILSVRC2012_val_00000001.JPEG is 1
            targets=[labels[name] for name, _ in rows],
            predictions=[predicted for _, predicted in rows],
            class_names=class_names,
        )
    errors = repositories / "label-errors"
    predictions = "cross_validated_predicted_labels/imagenet_val_set_pyx_argmax_predicted_labels.npy"
    np.savez(
        folder / "imagenet_val_cleanlab.npz",
        targets=np.load(errors / "original_test_labels" / "imagenet_val_set_original_labels.npy"),
        predictions=np.load(errors / predictions),
        class_names=class_names,
    )
    shutil.copy(repositories / "reassessed-imagenet" / "real.json", folder / "imagenet_val_real_labels.json")


def imagenet_names() -> list[str]:
    """Return the first name of each class; names of two classes get their number."""
    from timm.data import ImageNetInfo

    names = [text.partition(",")[0].replace("'", "") for text in ImageNetInfo().label_descriptions()]
    counts = Counter(names)
    return [f"{name} ({number})" if counts[name] > 1 else name for number, name in enumerate(names)]


def convert_clinc150(source: Path, folder: Path, embed: Callable[[list[str]], Any]) -> None:
    """Write the sentence embeddings of the 150 intents, without the sentences that belong to none of them."""
    sentences = json.loads(source.read_text(encoding="utf-8"))
    classes = sorted({intent for _, intent in sentences["train"]})
    arrays: dict[str, Any] = {"classes": classes}
    for part in ("train", "val", "test"):
        arrays[f"{part}_x"] = np.asarray(embed([text for text, _ in sentences[part]]), dtype=np.float16)
        arrays[f"{part}_y"] = [classes.index(intent) for _, intent in sentences[part]]
    np.savez(folder / "clinc150_minilm.npz", **arrays)


def load_encoder() -> Callable[[list[str]], Any]:
    """Return the frozen encoder, without its last module, which normalizes the embeddings."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(ENCODER)
    return SentenceTransformer(modules=[model[0], model[1]]).encode  # transformer and mean pooling


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("imagenet", "clinc150"))
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.study == "imagenet":
        convert_imagenet(given.source, given.folder, imagenet_names())
    else:
        convert_clinc150(given.source, given.folder, load_encoder())


if __name__ == "__main__":
    main()
