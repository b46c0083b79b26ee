"""Damaged and oversized ``.npy``, ``.npz`` and ``.safetensors`` files end in one line that names the file."""

import io
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from classgap.audit import Audit, read_predictions
from classgap.audit.io.sample_columns import read_sample_column
from classgap.data import load_features

TARGETS = np.array([0, 1, 1, 0])


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def header(description, data=b"\0" * 64):
    text = description.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def archive(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)


def patch(path, find, offset, value):
    """Change bytes after each occurrence of a signature."""
    content = bytearray(path.read_bytes())
    position = content.find(find)
    while position >= 0:
        content[position + offset : position + offset + len(value)] = value
        position = content.find(find, position + 1)
    path.write_bytes(content)


def broken_stream(path):
    archive(path, {"targets": npy(TARGETS), "predictions": npy(np.arange(4000) % 7)})
    content = bytearray(path.read_bytes())
    start = content.find(b"predictions.npy") + len(b"predictions.npy")
    content[start : start + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(content)


def encrypted(path):
    archive(path, {"targets": npy(TARGETS), "predictions": npy(TARGETS)})
    patch(path, b"PK\x03\x04", 6, b"\x01\x00")
    patch(path, b"PK\x01\x02", 8, b"\x01\x00")


def unknown_compression(path):
    archive(path, {"targets": npy(TARGETS), "predictions": npy(TARGETS)})
    patch(path, b"PK\x03\x04", 8, b"\x61\x00")
    patch(path, b"PK\x01\x02", 10, b"\x61\x00")


def with_header(description):
    def write(path):
        archive(path, {"targets": npy(TARGETS), "predictions": header(description)})

    return write


DAMAGED = {
    "damaged deflate stream": broken_stream,
    "encrypted": encrypted,
    "unknown compression": unknown_compression,
    "lzma stream": lambda path: (
        archive(path, {"targets": npy(TARGETS), "predictions": npy(TARGETS)}, zipfile.ZIP_LZMA),
        patch(path, b"predictions.npy", 15 + 4, b"\xff\xff\xff\xff\xff\xff\xff"),
    ),
    "header of no Python": with_header("{'descr': '<i8', "),
    "deep header": with_header("(" * 3000),
    "unknown dtype": with_header("{'descr': '<q9', 'fortran_order': False, 'shape': (4,)}"),
    "negative shape": with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-4,)}"),
    "huge shape": with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (2305843009213693951,)}"),
    "empty type": with_header("{'descr': '<U0', 'fortran_order': False, 'shape': (1152921504606846975,)}"),
    "member is empty": lambda path: archive(path, {"targets": npy(TARGETS), "predictions": b""}),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_archives_are_reported_in_one_line(tmp_path, name):
    path = tmp_path / "p.npz"
    DAMAGED[name](path)
    with pytest.raises(ValueError, match=r"p\.npz") as raised:
        read_predictions(path)
    assert "not a valid .npz archive" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_features_are_reported_in_one_line(tmp_path, name):
    path = tmp_path / "f.npz"
    DAMAGED[name](path)
    path.write_bytes(path.read_bytes().replace(b"predictions.npy", b"test_inputs.npy"))
    with pytest.raises(ValueError, match=r"f\.npz") as raised:
        load_features(str(path))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "description",
    [
        "{'descr': '<i8', ",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
        "(" * 3000,
    ],
)
def test_damaged_npy_files_are_reported_in_one_line(tmp_path, description):
    (tmp_path / "p.npy").write_bytes(header(description))
    np.save(tmp_path / "targets.npy", TARGETS)
    with pytest.raises(ValueError, match=r"p\.npy") as raised:
        read_predictions(tmp_path / "p.npy", targets=tmp_path / "targets.npy")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", [np.longdouble, ">f4", ">i8", ">u2"])
def test_types_that_torch_lacks_give_the_same_audit(tmp_path, kind):
    logits = np.array([[3, 1], [0, 2], [5, 4], [1, 0]])
    np.savez(tmp_path / "p.npz", targets=TARGETS.astype(kind), logits=logits.astype(kind))
    found = Audit.from_file(tmp_path / "p.npz")
    assert found.overall.accuracy == 0.75
    assert found.samples.predictions.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("kind", [np.longdouble, ">f8"])
def test_features_of_any_float_type_are_read(tmp_path, kind):
    values = np.arange(40).reshape(20, 2)
    np.savez(tmp_path / "f.npz", features=values.astype(kind), targets=np.arange(20) % 2)
    data = load_features(str(tmp_path / "f.npz"))
    rows = torch.cat([data.train.inputs[torch.arange(len(data.train))], data.test.inputs[torch.arange(len(data.test))]])
    assert sorted(rows[:, 0].tolist()) == list(range(0, 40, 2))


def test_unused_arrays_are_not_decompressed(tmp_path):
    # The member is damaged: reading it would fail.
    path = tmp_path / "p.npz"
    archive(path, {"targets": npy(TARGETS), "predictions": npy(TARGETS), "notes_of_mine": npy(np.zeros(10**6))})
    content = bytearray(path.read_bytes())
    start = content.find(b"notes_of_mine.npy") + len(b"notes_of_mine.npy")
    content[start : start + 8] = b"\xff" * 8
    path.write_bytes(content)
    predictions = read_predictions(path)
    assert predictions.targets_N.tolist() == TARGETS.tolist()
    assert [notice.values["names"] for notice in predictions.notices] == [("notes_of_mine",)]


def test_a_huge_label_does_not_name_every_class(tmp_path):
    np.savez(tmp_path / "p.npz", targets=TARGETS, predictions=np.array([0, 1, 2**60, 1]))
    with pytest.raises(ValueError, match=str(2**60)):
        read_predictions(tmp_path / "p.npz")
    np.savez(tmp_path / "f.npz", features=np.zeros((4, 2)), targets=np.array([0, 1, 2**60, 1]))
    with pytest.raises(ValueError, match=str(2**60)):
        load_features(str(tmp_path / "f.npz"))


def test_complex_tensors_are_rejected(tmp_path):
    save_file({"targets": torch.tensor([0, 1]), "logits": torch.eye(2) * 1j}, tmp_path / "p.safetensors")
    with pytest.raises(ValueError, match="logits must be a dense tensor of real") as raised:
        read_predictions(tmp_path / "p.safetensors")
    assert "complex64" in str(raised.value)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_small_floats_are_read(tmp_path, kind):
    tensors = {"targets": torch.tensor([0.0, 1.0, 2.0]).to(kind), "logits": torch.eye(3).to(kind)}
    save_file(tensors, tmp_path / "p.safetensors")
    predictions = read_predictions(tmp_path / "p.safetensors")
    assert predictions.targets_N.tolist() == predictions.predictions_N.tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["V8", "U8", "M8[s]"])
def test_shards_of_different_types_are_rejected(tmp_path, kind):
    np.savez(tmp_path / "p-0.npz", targets=TARGETS, predictions=TARGETS)
    np.savez(tmp_path / "p-1.npz", targets=TARGETS.astype(kind), predictions=TARGETS)
    with pytest.raises(ValueError, match=r"targets of p-0\.npz and p-1\.npz are numbers and"):
        read_predictions(tmp_path / "p-*.npz")


def test_shards_of_small_floats_are_joined(tmp_path):
    for part in range(2):
        tensors = {"targets": torch.tensor([0, 1.0]).bfloat16(), "logits": torch.eye(2), "train_counts": torch.ones(2)}
        tensors["train_counts"] = tensors["train_counts"].bfloat16()
        save_file(tensors, tmp_path / f"p-{part}.safetensors")
    assert read_predictions(tmp_path / "p-*.safetensors").targets_N.tolist() == [0, 1, 0, 1]


def test_filenames_of_an_archive_are_read(tmp_path):
    np.savez_compressed(tmp_path / "p.npz", targets=TARGETS, predictions=TARGETS, filenames=np.array(list("abcd")))
    assert read_sample_column(tmp_path / "p.npz", "filenames") == dict(enumerate("abcd"))
