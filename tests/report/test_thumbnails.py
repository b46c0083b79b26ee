"""Thumbnails: the right samples, escaped, readable from any kind of input, within the size budget."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from html_reader import Page
from PIL import Image
from synthetic_audits import SCRIPT, with_budgets

from classgap.audit import Audit
from classgap.report import render_html, write_html
from classgap.report.thumbnails import MAX_BYTES, PER_ROW, SIDE, to_pixels


class Noise:
    """Images that hardly compress, by sample number."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __getitem__(self, number: int) -> np.ndarray:
        return np.random.default_rng(number).integers(0, 256, (self.size, self.size, 3), dtype=np.uint8)


def pictures(source: str) -> list[tuple[str, Image.Image]]:
    """Return alternative text and decoded image of each picture."""
    found = []
    for image in Page(source).of("img"):
        kind, data = re.fullmatch(r"data:image/(png|jpeg);base64,(.*)", image["src"]).groups()
        picture = Image.open(io.BytesIO(base64.b64decode(data)))
        assert picture.format == kind.upper()
        assert picture.size == (int(image["width"]), int(image["height"]))
        found.append((image["alt"], picture))
    return found


def colored(number: int) -> tuple[int, int, int]:
    return number % 256, number // 256, 77


def test_no_pictures_unless_asked(budget_audit: Audit):
    page = Page(render_html(budget_audit))
    assert not page.of("img")
    assert "samples" not in [section.get("id") for section in page.of("section")]


def test_each_picture_is_that_of_its_sample(budget_audit: Audit):
    samples = {n: np.full((5, 9, 3), colored(n), dtype=np.uint8) for n in range(len(budget_audit.samples.targets))}
    found = pictures(render_html(budget_audit, thumbnails=samples))
    numbers = [int(re.search(r"test sample (\d+)", alt)[1]) for alt, _ in found]
    assert [picture.getpixel((0, 0)) for _, picture in found] == [colored(n) for n in numbers]
    predictions = budget_audit.samples.predictions
    for (alt, _), number in zip(found, numbers, strict=True):
        name = budget_audit.class_names[predictions[number]]
        assert alt.endswith(f"predicted as {name}") or not name.isprintable() or len(name) > 25
    assert not budget_audit.samples.correct[numbers].any()
    worst = min((e for e in budget_audit.classes if e.accuracy is not None), key=lambda e: (e.accuracy, e.index))
    assert numbers[:PER_ROW] == list(worst.doubted_samples[:PER_ROW])
    rest = [n for n in worst.confident_errors if n not in worst.doubted_samples]
    assert numbers[PER_ROW : PER_ROW + len(rest[:PER_ROW])] == rest[:PER_ROW]


def test_samples_are_found_by_index():
    audit = Audit.from_predictions(predictions=[0, 0, 1], targets=[0, 1, 1], index=[30, 10, 20])
    ((alt, picture),) = pictures(render_html(audit, thumbnails={10: np.full((3, 3), 200, dtype=np.uint8)}))
    assert "test sample 10, predicted as 0" in alt
    assert picture.getpixel((1, 1)) == (200, 200, 200)


@pytest.mark.parametrize("size", [64, 200])
def test_size_budget_is_kept(budget_audit: Audit, tmp_path: Path, size: int):
    names = [f"{name} {'long ' * 40}" for name in budget_audit.class_names]
    audit = Audit.from_predictions(
        predictions=budget_audit.samples.predictions, targets=budget_audit.samples.targets, class_names=names
    )
    audit = with_budgets(audit)
    write_html(audit, tmp_path / "plain.html")
    write_html(audit, tmp_path / "pictures.html", thumbnails=Noise(size))
    sizes = [(tmp_path / name).stat().st_size for name in ("plain.html", "pictures.html")]
    assert MAX_BYTES == 1_000_000
    assert 300_000 < sizes[1] - sizes[0] <= MAX_BYTES
    source = (tmp_path / "pictures.html").read_text()
    dropped = re.search(r"keep the page small: (\d+)", source)
    shown, wanted = len(pictures(source)), 8 * 2 * PER_ROW
    assert all(max(picture.size) <= SIDE for _, picture in pictures(source))
    assert (dropped is not None) == (size == 64)  # stored without loss
    assert shown + (int(dropped[1]) if dropped else 0) <= wanted


def test_budget_cuts_all_classes_alike(budget_audit: Audit):
    source = render_html(budget_audit, thumbnails=Noise(64))
    rows = [row.count("<img") for row in re.findall(r"<ul class=\"thumbnails\">.*?</ul>", source, flags=re.DOTALL)]
    assert max(rows) - min(rows) <= PER_ROW // 2
    assert min(rows) >= 3


def test_texts_are_escaped_and_shortened(budget_audit: Audit):
    texts = [f"{SCRIPT}\n\n  {number} \x1b[31m" + "word " * 300 for number in range(len(budget_audit.samples.targets))]
    source = render_html(budget_audit, thumbnails=texts)
    assert SCRIPT not in source
    page = Page(source)
    shown = [text for tag, text in page.texts if tag == "q"]
    assert shown
    assert all(text.startswith(f"{SCRIPT} ") and "\x1b" not in text and len(text) <= 360 for text in shown)
    assert len(page.of("script")) == 2


def test_file_names_are_escaped(tmp_path: Path):
    names = [tmp_path / '"><img src=x onerror=alert(1)>.png', tmp_path / "b.png"]
    for name in names:
        Image.new("RGB", (300, 150), (10, 200, 30)).save(name)
    audit = Audit.from_predictions(predictions=[1, 0], targets=[0, 1])
    source = render_html(audit, thumbnails=names)
    assert all("onerror" not in image for image in Page(source).of("img"))
    assert [picture.size for _, picture in pictures(source)] == [(SIDE, SIDE // 2)] * 2
    assert str(tmp_path) not in source


def test_pictures_keep_no_metadata(tmp_path: Path):
    image = Image.new("RGB", (300, 200))
    exif = Image.Exif()
    exif[0x010E] = "a private place"
    exif[0x0112] = 6  # rotated: upright, it is higher than wide
    image.save(tmp_path / "a.jpg", exif=exif, comment=b"a private place")
    audit = Audit.from_predictions(predictions=[1, 1], targets=[0, 1])
    ((_, picture),) = pictures(render_html(audit, thumbnails=[tmp_path / "a.jpg"]))
    assert picture.height > picture.width
    assert not picture.getexif()
    assert b"private" not in picture.tobytes() + repr(picture.info).encode()


def test_unreadable_samples(tmp_path: Path):
    audit = Audit.from_predictions(predictions=[1, 0, 0], targets=[0, 1, 1])
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    good = np.zeros((4, 4), dtype=np.uint8)
    source = render_html(audit, thumbnails=[tmp_path / "bad.jpg", good, tmp_path / "missing.jpg"])
    assert "Could not be read: 2." in source
    assert len(pictures(source)) == 1
    with pytest.raises(ValueError, match="none of the 3 samples can be read"):
        render_html(audit, thumbnails={})


def test_comparisons_have_no_thumbnails(diff):
    with pytest.raises(ValueError, match=r"thumbnails .* AuditDiff"):
        render_html(diff, thumbnails=[])


def test_perfect_audit():
    source = render_html(Audit.from_predictions(predictions=[0, 1], targets=[0, 1]), thumbnails=[])
    assert "nothing to show" in source


RAMP = np.arange(15, dtype=np.uint8).reshape(3, 5) * 16


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (RAMP, RAMP),
        (RAMP.astype(np.int64), RAMP),
        (RAMP[:, :, None], RAMP),
        (RAMP[None], RAMP),
        (RAMP / 255, RAMP),
        ((RAMP / 255).astype(np.float16), RAMP),
        (RAMP * 3.0 - 100, np.rint(RAMP / 224 * 255)),  # normalized
        (RAMP > 100, (RAMP > 100) * 255),
        (np.full((3, 5), np.nan), np.zeros((3, 5))),
    ],
    ids=["uint8", "int64", "channels-last", "channels-first", "float", "half", "normalized", "bool", "nan"],
)
def test_arrays_become_pixels(sample: np.ndarray, expected: np.ndarray):
    pixels = to_pixels(sample)
    assert pixels.shape == (3, 5, 3)
    assert pixels.dtype == np.uint8
    np.testing.assert_allclose(pixels[:, :, 1], expected, atol=1)


def test_alpha_is_dropped_and_wrong_shapes_are_rejected():
    assert to_pixels(np.zeros((4, 6, 7), dtype=np.uint8)).shape == (6, 7, 3)
    for shape in ((2, 5, 5), (5,), (1, 3, 5, 5), (0, 4)):
        with pytest.raises(ValueError, match="shape"):
            to_pixels(np.zeros(shape))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda array: (torch.from_numpy(array).permute(2, 0, 1), 3),
        lambda array: {"image": Image.fromarray(array), "label": 3},
        lambda array: [Image.fromarray(array).convert("RGBA")],
        lambda array: Image.fromarray(array[:, :, 0].astype(np.uint16) << 8),
    ],
    ids=["tensor", "mapping", "list", "16 bits"],
)
def test_items_of_datasets(wrap):
    array = np.full((6, 5, 3), 120, dtype=np.uint8)
    audit = Audit.from_predictions(predictions=[1, 1], targets=[0, 1])
    ((_, picture),) = pictures(render_html(audit, thumbnails=[wrap(array)]))
    assert picture.size == (5, 6)
    assert picture.getpixel((2, 2)) == (120, 120, 120)


def test_page_is_reproducible(budget_audit: Audit, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    first, second = (render_html(replace(budget_audit), thumbnails=Noise(40)) for _ in range(2))
    assert first == second
    assert '<time datetime="1970-01-02">' in first
