"""Flags of ``classgap audit`` about the page: --name, --thumbnails, --images, --map, --check-labels."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from safetensors.numpy import save_file

from classgap.audit import Audit
from classgap.cli import main


def arrays(samples: int = 60) -> dict[str, Any]:
    """Three classes; sample i of class i % 3 is confidently wrong if i % 5 == 0."""
    rng = np.random.default_rng(0)
    targets = np.arange(samples) % 3
    shown = np.where(np.arange(samples) % 5 == 0, (targets + 1) % 3, targets)
    return {
        "logits": (rng.normal(size=(samples, 3)) + 5 * np.eye(3)[shown]).astype(np.float32),
        "targets": targets,
        "features": (rng.normal(size=(samples, 4)) + np.eye(3, 4)[shown]).astype(np.float32),
    }


NAMES = [f"sub/img {i}.png" for i in range(60)]


def images(folder: Path) -> Path:
    (folder / "images" / "sub").mkdir(parents=True)
    for i, name in enumerate(NAMES):
        Image.new("RGB", (20, 20), (4 * i, 0, 99)).save(folder / "images" / name)
    return folder / "images"


def write(path: Path, names: list[str] | None = None, texts: list[str] | None = None) -> Path:
    """Write predictions in reversed order, with an index."""
    data = arrays() | {"index": np.arange(60)}
    data = {key: value[::-1].copy() for key, value in data.items()}
    extra = {"filenames": names and names[::-1], "texts": texts and texts[::-1]}
    extra = {key: value for key, value in extra.items() if value is not None}
    if path.suffix == ".npz":
        np.savez(path, **data, **{key: np.array(value) for key, value in extra.items()})
    elif path.suffix == ".parquet":
        columns = {key.removesuffix("s"): value for key, value in extra.items()}
        matrices = {key: data[key].tolist() for key in ("logits", "features")}
        pq.write_table(pa.table({"target": data["targets"], "index": data["index"], **matrices, **columns}), path)
    elif path.suffix == ".safetensors":
        save_file(data, path, metadata={key: json.dumps(value) for key, value in extra.items()})
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["target", "index", *(key.removesuffix("s") for key in extra), "0", "1", "2"])
            for i in range(60):
                cells = [data["targets"][i], data["index"][i], *(value[i] for value in extra.values())]
                writer.writerow([*cells, *map(float, data["logits"][i])])
    return path


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "csv", "parquet"])
def test_images_of_a_folder(tmp_path: Path, capsys, suffix: str):
    source, page = write(tmp_path / f"model.{suffix}", NAMES), tmp_path / "page.html"
    assert main(["audit", str(source), "--html", str(page), "--thumbnails", "--images", str(images(tmp_path))]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "not used" not in out
    found = re.findall(r'alt="img (\d+).png, test sample (\d+), predicted as (\d)"', page.read_text())
    assert len(found) >= 12
    assert all(number == file for file, number, _ in found)
    assert {int(number) for _, number, _ in found} >= set(range(0, 60, 5))


@pytest.mark.parametrize("index", [True, False], ids=["index", "rows"])
def test_images_of_shards(tmp_path: Path, capsys, index: bool):
    data, page = arrays() | {"filenames": np.array(NAMES)} | ({"index": np.arange(60)} if index else {}), "page.html"
    for i, part in enumerate((slice(0, 25), slice(25, 60))):
        np.savez(tmp_path / f"part-{i}.npz", **{name: values[part] for name, values in data.items()})
    words = ["--html", str(tmp_path / page), "--thumbnails", "--images", str(images(tmp_path))]
    assert main(["audit", str(tmp_path / "part-*.npz"), *words]) == 0
    assert capsys.readouterr().err == ""
    found = re.findall(r'alt="img (\d+).png, test sample (\d+), ', (tmp_path / page).read_text())
    assert {number for _, number in found} >= set(map(str, range(0, 60, 5)))
    assert all(number == file for file, number in found)
    np.savez(tmp_path / "part-2.npz", **{name: data[name][:5] for name in data if name != "filenames"})
    assert main(["audit", str(tmp_path / "part-*.npz"), *words]) == 2
    assert "filenames" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["npz", "csv", "parquet"])
def test_ids_are_shown_as_they_were_given(tmp_path: Path, capsys, suffix: str):
    names = [f"sub/img {i}.png" for i in range(60)]
    key = "filenames" if suffix == "npz" else "filename"
    source, page, saved, table = (tmp_path / name for name in (f"model.{suffix}", "page.html", "audit.json", "out.csv"))
    write(source, names)
    words = ["--key", key, "--html", str(page), "--json", str(saved), "--csv", str(table), "--check-labels"]
    assert main(["audit", str(source), *words, "--thumbnails", "--images", str(images(tmp_path))]) == 0
    out = capsys.readouterr().out
    audit = Audit.load(saved)
    listed = {sample for entry in audit.classes for sample in (*entry.doubted_samples, *entry.confident_errors)}
    wrong = {names[i] for i in np.flatnonzero(arrays()["logits"].argmax(axis=1) != arrays()["targets"])}
    assert listed
    assert listed <= wrong
    text = page.read_text()
    assert min(listed) in text  # in the drawers
    assert re.findall(r'alt="img (\d+).png, test sample sub/img \1.png, ', text)
    hashes = re.compile(r"\b(7[2-9]|[89]\d|1[0-4]\d)\d{15}\b")
    assert not hashes.search(text)
    assert not hashes.search(out)
    with table.open() as file:
        cells = [row["confident_errors"] for row in csv.DictReader(file)]
    assert {each for cell in cells for each in cell.split("|")} <= wrong | {""}


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "csv"])
def test_texts(tmp_path: Path, capsys, suffix: str):
    source, page = tmp_path / f"model.{suffix}", tmp_path / "page.html"
    write(source, texts=[f"<b>text {i}</b>, 'with' \"quotes\"" for i in range(60)])
    assert main(["audit", str(source), "--html", str(page), "--thumbnails"]) == 0
    assert capsys.readouterr().err == ""
    assert "&lt;b&gt;text 15&lt;/b&gt;" in page.read_text()
    assert "<b>" not in page.read_text()


def test_numbers_in_a_column_named_text_are_scores(tmp_path: Path):
    path = tmp_path / "layout.csv"
    path.write_text("target,text,title\ntext,0.9,0.1\ntitle,0.2,0.8\n")
    assert Audit.from_file(path).class_names == ("text", "title")
    path.write_text("target,text,a,b\na,0.5,0.9,0.1\nb,no number,0.2,0.8\n")
    assert Audit.from_file(path).class_names == ("a", "b")


def test_pictures_of_a_run(tmp_path: Path, capsys):
    run = tmp_path / "run"
    assert (
        main(["train", "--data", "digits", "--method", "erm", "--max-steps", "20", "--seed", "0", "--out", str(run)])
        == 0
    )
    page = tmp_path / "page.html"
    assert main(["audit", str(run), "--html", str(page), "--thumbnails"]) == 0
    assert "alt=" not in (run / "report.html").read_text()  # only when asked
    from classgap.data import load

    digits = load("digits").test
    row_of = {int(number): row for row, number in enumerate(digits.index)}
    import base64
    import io

    found = re.findall(r'base64,([^"]+)" alt="test sample (\d+), predicted', page.read_text())
    assert len(found) > 5
    for data, number in found:
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        expected, _, _ = digits[row_of[int(number)]]
        np.testing.assert_array_equal(pixels[:, :, 0], expected[0].numpy())


def flags(case: str, folder: Path) -> tuple[list[str], str]:
    """Return wrong arguments, and words of the message."""
    plain, page = write(folder / "plain.npz"), ["--html", str(folder / "page.html")]
    match case:
        case "no page":
            return [str(plain), "--thumbnails"], "--html"
        case "images alone":
            return [str(plain), *page, "--images", str(folder)], "--thumbnails"
        case "no samples":
            return [str(plain), *page, "--thumbnails"], "--images"
        case "no filenames":
            return [str(plain), *page, "--thumbnails", "--images", str(folder)], "filenames"
        case "no folder":
            return [str(plain), *page, "--thumbnails", "--images", str(folder / "none")], "does not exist"
        case "no such images":
            named = write(folder / "named.npz", NAMES)
            return [str(named), *page, "--thumbnails", "--images", str(folder)], "can be read"
        case "outside":
            named = write(folder / "named.npz", [f"../{name}" for name in NAMES])
            return [str(named), *page, "--thumbnails", "--images", str(folder)], "'../sub/img"
        case "absolute":
            named = write(folder / "named.npz", [f"/etc/{name}" for name in NAMES])
            return [str(named), *page, "--thumbnails", "--images", str(folder)], "'/etc/sub/img"
        case "too few names":
            np.savez(folder / "short.npz", **arrays(), filenames=np.array(NAMES[:59]))
            return [str(folder / "short.npz"), *page, "--thumbnails", "--images", str(folder)], "59 and 60"
        case "numbers as names":
            np.savez(folder / "odd.npz", **arrays(), filenames=np.arange(60))
            return [str(folder / "odd.npz"), *page, "--thumbnails", "--images", str(folder)], "strings"
        case "saved audit":
            Audit.from_file(plain).save(folder / "saved.json")
            return [str(folder / "saved.json"), *page, "--thumbnails", "--images", str(folder)], "--images"
        case "unknown class":
            return [str(plain), *page, "--map", "0", "zebra"], "zebra"
        case "no features":
            np.savez(folder / "labels.npz", targets=arrays()["targets"], logits=arrays()["logits"])
            return [str(folder / "labels.npz"), *page, "--map", "0"], "features"
        case "no scores":
            np.savez(folder / "labels.npz", targets=arrays()["targets"], predictions=arrays()["targets"])
            return [str(folder / "labels.npz"), *page, "--check-labels"], "scores"
        case "no name":
            return [str(plain), *page, "--name", " "], "--name"
    raise AssertionError(case)


@pytest.mark.parametrize(
    "case",
    [
        *("no page", "images alone", "no samples", "no filenames", "no folder", "no such images", "outside"),
        *("absolute", "too few names", "numbers as names", "saved audit", "unknown class", "no features", "no scores"),
        "no name",
    ],
)
def test_wrong_flags(tmp_path: Path, capsys, case: str):
    words, fact = flags(case, tmp_path)
    out = tmp_path / "audit.json"
    assert main(["audit", *words, "--json", str(out)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert fact in err
    assert not out.exists()
    assert not (tmp_path / "page.html").exists()


def test_name_date_source_and_command(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    source, page, saved = write(tmp_path / "a & b.npz"), tmp_path / "page.html", tmp_path / "audit.json"
    words = ["audit", str(source), "--html", str(page), "--json", str(saved), "--name", "Release <1.2>"]
    assert main(words) == 0
    text = page.read_text().replace("<wbr>", "")
    assert "<title>Release &lt;1.2&gt;: classgap audit</title>" in text
    assert "2023-11-14" in text
    assert f"<dd>{tmp_path}/a &amp; b.npz</dd>" in text
    assert f"<code>classgap audit &#39;{tmp_path}/a &amp; b.npz&#39; --html" in text
    assert Audit.load(saved).name == "Release <1.2>"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert main(["compare", str(source), str(source), "--html", str(page)]) == 0
    text = page.read_text().replace("<wbr>", "")
    assert f"<code>classgap compare &#39;{tmp_path}/a &amp; b.npz&#39;" in text
    assert "2023-11-14" not in text


def test_map_shows_the_given_classes(tmp_path: Path):
    source, saved = write(tmp_path / "model.npz"), tmp_path / "audit.json"
    assert main(["audit", str(source), "--map", "2", "0", "--json", str(saved)]) == 0
    assert Audit.load(saved).map.classes == ("2", "0")


def test_check_labels_lists_swapped_labels(tmp_path: Path, capsys):
    rng = np.random.default_rng(0)
    truth = np.arange(600) % 3
    logits = 4 * np.eye(3)[truth] + rng.normal(size=(600, 3))
    targets = truth.copy()
    swapped = np.array([30, 33, 60, 90])  # of class 0, labeled as 1
    targets[swapped] = 1
    logits[swapped] = [6, 0, 0]
    np.savez(tmp_path / "model.npz", logits=logits, targets=targets, class_names=["cat", "dog", "cow"])
    assert main(["audit", str(tmp_path / "model.npz")]) == 0
    assert "Labels to check" not in capsys.readouterr().out
    assert main(["audit", str(tmp_path / "model.npz"), "--check-labels"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out[out.index("Labels to check") :].splitlines()]
    (found,) = [row for row in rows if row[:2] == ["dog", "cat"]]
    listed = {int(word.strip(",")) for word in found[3:]}
    assert listed >= set(swapped.tolist())
    assert int(found[2]) == len(listed) <= 6
