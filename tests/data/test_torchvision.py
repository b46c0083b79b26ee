"""Load tiny copies in torchvision's layout, with checksums patched where torchvision verifies them."""

import hashlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import as_tensor_layout, pixels, write

from classgap.data import load

datasets = pytest.importorskip("torchvision.datasets")
scipy_io = pytest.importorskip("scipy.io")


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def dump(path: Path, content: dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content))
    return path


@pytest.mark.parametrize(
    ("name", "kind", "folder", "train", "test", "meta", "key", "labels", "classes"),
    [
        ("cifar10", "CIFAR10", "cifar-10-batches-py", ["data_batch_1", "data_batch_2"], "test_batch", "batches.meta",
         "label_names", "labels", 10),
        ("cifar100", "CIFAR100", "cifar-100-python", ["train"], "test", "meta", "fine_label_names", "fine_labels", 100),
    ],
)  # fmt: skip
def test_cifar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, folder: str, train: list[str], test: str,
    meta: str, key: str, labels: str, classes: int,
) -> None:  # fmt: skip
    made = np.random.default_rng(0)
    images = {file: made.integers(0, 256, (4, 3072), dtype=np.uint8) for file in (*train, test)}
    targets = {file: made.integers(0, classes, 4).tolist() for file in images}
    for file, rows in images.items():
        dump(tmp_path / folder / file, {"data": rows, labels: targets[file]})
    names = [f"class {number}" for number in range(classes)]
    sums = dump(tmp_path / folder / meta, {key: names})
    opened = getattr(datasets, kind)
    monkeypatch.setattr(opened, "train_list", [[file, md5(tmp_path / folder / file)] for file in train])
    monkeypatch.setattr(opened, "test_list", [[test, md5(tmp_path / folder / test)]])
    monkeypatch.setattr(opened, "meta", {"filename": meta, "key": key, "md5": md5(sums)})
    data = load(name, root=tmp_path)
    joined = np.concatenate([images[file] for file in train]).reshape(-1, 3, 32, 32)
    assert np.array_equal(data.train.inputs[torch.arange(len(joined))].numpy(), joined)
    assert data.train.targets.tolist() == [label for file in train for label in targets[file]]
    assert data.test.targets.tolist() == targets[test]
    assert data.class_names == tuple(names)
    assert (data.kind, data.shape) == ("image", (3, 32, 32))


def test_mnist(tmp_path: Path) -> None:
    made, kept = np.random.default_rng(0), {}
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for split, count in (("train", 5), ("t10k", 3)):  # the IDX format: magic number, sizes, bytes
        images, labels = made.integers(0, 256, (count, 28, 28), dtype=np.uint8), np.arange(count, dtype=np.uint8) + 5
        sizes = np.array([0x803, count, 28, 28], dtype=">u4").tobytes()
        (folder / f"{split}-images-idx3-ubyte").write_bytes(sizes + images.tobytes())
        sizes = np.array([0x801, count], dtype=">u4").tobytes()
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(sizes + labels.tobytes())
        kept[split] = images
    data = load("mnist", root=tmp_path)
    assert data.train.targets.tolist() == [5, 6, 7, 8, 9]
    assert np.array_equal(data.train.inputs[torch.arange(5)][:, 0].numpy(), kept["train"])
    assert np.array_equal(data.test.inputs[torch.arange(3)][:, 0].numpy(), kept["t10k"])
    assert (data.shape, data.class_names, data.allow_flip) == ((1, 28, 28), tuple("0123456789"), False)


def test_svhn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, table = np.random.default_rng(0), {}
    for split in ("train", "test"):
        file = tmp_path / f"{split}_32x32.mat"
        images = made.integers(0, 256, (32, 32, 3, 3), dtype=np.uint8)
        scipy_io.savemat(file, {"X": images, "y": np.array([[10], [1], [9]])})
        table[split] = ["", file.name, md5(file)]
    monkeypatch.setattr(datasets.SVHN, "split_list", table)
    data = load("svhn", root=tmp_path)
    assert data.train.targets.tolist() == [0, 1, 9]
    assert not data.allow_flip
    assert np.array_equal(data.test.inputs[torch.tensor([1])][0].numpy(), images[..., 1].transpose(2, 0, 1))


def same_image(split: object, row: int, seed: int, side: int = 6) -> bool:
    given = split.inputs[torch.tensor([row])][0].numpy()  # type: ignore[attr-defined]
    return np.array_equal(given, as_tensor_layout(pixels(seed, side, side)))


def write_png(path: Path, seed: int) -> None:
    """Lossless pixels under whatever name the layout asks for; Pillow looks at contents."""
    write(path.with_suffix(".png"), seed).rename(path)


def test_flowers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "flowers-102"
    for number in range(1, 7):
        write_png(base / "jpg" / f"image_{number:05d}.jpg", number)
    scipy_io.savemat(base / "imagelabels.mat", {"labels": np.array([1, 102, 1, 7, 7, 2])})
    scipy_io.savemat(base / "setid.mat", {"trnid": [1, 4], "valid": [2, 5], "tstid": [3, 6]})
    table = {
        "label": ("imagelabels.mat", md5(base / "imagelabels.mat")),
        "setid": ("setid.mat", md5(base / "setid.mat")),
    }
    monkeypatch.setattr(datasets.Flowers102, "_file_dict", table)
    data = load("flowers:size=6", root=tmp_path)
    assert data.train.targets.tolist() == [0, 6, 101, 6]  # train, then val
    assert data.test.targets.tolist() == [0, 1]
    assert data.num_classes == 102
    assert data.class_names[0] == "pink primrose"
    assert same_image(data.train, 2, 2)


def test_pets(tmp_path: Path) -> None:
    base = tmp_path / "oxford-iiit-pet"
    (base / "annotations").mkdir(parents=True)
    for seed, name in enumerate(("Abyssinian_1", "great_pyrenees_3", "Abyssinian_2")):
        write_png(base / "images" / f"{name}.jpg", seed)
    (base / "annotations" / "trainval.txt").write_text("Abyssinian_1 1 1 1\ngreat_pyrenees_3 2 2 1\n")
    (base / "annotations" / "test.txt").write_text("Abyssinian_2 1 1 1\n")
    data = load("pets:size=6", root=tmp_path)
    assert data.class_names == ("Abyssinian", "Great Pyrenees")
    assert data.train.targets.tolist() == [0, 1]
    assert same_image(data.test, 0, 2)


def test_food(tmp_path: Path) -> None:
    base = tmp_path / "food-101"
    (base / "meta").mkdir(parents=True)
    lists = {
        "train": {"pho": ["pho/1", "pho/2"], "gyoza": ["gyoza/3"]},
        "test": {"pho": ["pho/4"], "gyoza": ["gyoza/5"]},
    }
    for split, content in lists.items():
        (base / "meta" / f"{split}.json").write_text(json.dumps(content))
        for name in (name for names in content.values() for name in names):
            write_png(base / "images" / f"{name}.jpg", int(name[-1]))
    data = load("food:size=6", root=tmp_path)
    assert data.class_names == ("gyoza", "pho")
    assert data.train.targets.tolist() == [1, 1, 0]
    assert same_image(data.test, 1, 5)


def test_cars(tmp_path: Path) -> None:
    base = tmp_path / "stanford_cars"
    (base / "devkit").mkdir(parents=True)
    kind = [("fname", "O"), ("class", "O")]
    for file, split in ((base / "devkit" / "cars_train_annos.mat", "train"),
                        (base / "cars_test_annos_withlabels.mat", "test")):  # fmt: skip
        rows = np.array([(f"{number}.jpg", number) for number in (1, 2)], dtype=kind)
        scipy_io.savemat(file, {"annotations": rows})
        for number in (1, 2):
            write_png(base / f"cars_{split}" / f"{number}.jpg", number)
    scipy_io.savemat(base / "devkit" / "cars_meta.mat", {"class_names": np.array(["Audi", "BMW"], dtype=object)})
    data = load("cars:size=6", root=tmp_path)
    assert data.class_names == ("Audi", "BMW")
    assert data.train.targets.tolist() == data.test.targets.tolist() == [0, 1]


def test_aircraft(tmp_path: Path) -> None:
    base = tmp_path / "fgvc-aircraft-2013b" / "data"
    for number in (1, 2, 3):
        write_png(base / "images" / f"{number}.jpg", number)
    (base / "variants.txt").write_text("707-320\nA 300\n")
    (base / "images_variant_trainval.txt").write_text("1 A 300\n2 707-320\n")
    (base / "images_variant_test.txt").write_text("3 A 300\n")
    data = load("aircraft:size=6", root=tmp_path)
    assert data.class_names == ("707-320", "A 300")
    assert data.train.targets.tolist() == [1, 0]
    assert same_image(data.test, 0, 3)


def test_imagenet(tmp_path: Path) -> None:
    base = tmp_path / "imagenet"
    for seed, wnid in enumerate(("n02012849", "n03126707", "n01440764")):
        write_png(base / "train" / wnid / "a.JPEG", seed)
        write_png(base / "val" / wnid / "b.JPEG", 10 + seed)
    words = {"n02012849": ("crane", "bird"), "n03126707": ("crane",), "n01440764": ("tench", "Tinca tinca")}
    torch.save((words, []), base / "meta.bin")
    data = load("imagenet:size=6", root=tmp_path)
    assert data.class_names == ("tench", "crane (n02012849)", "crane (n03126707)")
    assert same_image(data.test, 0, 12)


def test_inaturalist(tmp_path: Path) -> None:
    names = ["00000_Animalia_Annelida_C_O_F_Lumbricus_terrestris", "00001_Plantae_P_C_O_F_Bellis_perennis"]
    for version in ("2021_train", "2021_valid"):
        for number, name in enumerate(names):
            for image in ("b", "a"):
                write_png(tmp_path / version / name / f"{image}.jpg", 10 * number + (image == "b"))
    data = load("inaturalist:size=6", root=tmp_path)
    assert data.class_names == ("Lumbricus terrestris", "Bellis perennis")
    assert data.train.targets.tolist() == [0, 0, 1, 1]
    assert same_image(data.train, 2, 10)  # sorted by name, not as the file system lists them


def test_a_failed_download_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.CIFAR100, "url", (tmp_path / "nothing.tar.gz").as_uri())
    with pytest.raises(ValueError, match=r"cifar100 was not found in .*downloaded"):
        load("cifar100", root=tmp_path / "data")


def test_the_environment_sets_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLASSGAP_DATA", str(tmp_path / "mine"))
    with pytest.raises(ValueError, match=rf"cars was not found in {tmp_path / 'mine'}"):
        load("cars")
