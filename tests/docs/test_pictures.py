"""The pictures show the reports of today: their texts are those of the reports, and each picture has its text."""

from pathlib import Path
from types import ModuleType

import pytest

from browser import find_chromium
from scripts import load_script


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    return load_script("benchmarks/case_study_pictures.py")


def test_each_picture_belongs_to_its_stored_text(pictures: ModuleType) -> None:
    stored = pictures.stored.read(pictures.RESULTS)
    assert set(stored) == set(pictures.PICTURES)
    for name, picture in stored.items():
        assert picture["sha256"] == pictures.checksum(pictures.DOCS / name), f"{name}: run make pictures"


@pytest.mark.skipif(find_chromium() is None, reason="needs chromium")
@pytest.mark.parametrize(
    "name",
    [
        "report.png",
        "imagenet.png",
        "case-studies/imagenet-compare.png",
        pytest.param("case-studies/clinc150-fix.png", marks=pytest.mark.slow),
    ],
)
def test_pictures_show_the_text_of_the_reports(pictures: ModuleType, name: str, tmp_path: Path) -> None:
    picture = pictures.PICTURES[name]
    files = pictures.find_data(picture, pictures.SHARED)
    if files is None:
        pytest.skip("needs ../shared/data")
    _, text = pictures.take(pictures.write_report(picture, tmp_path, files), picture.hidden, find_chromium())
    assert text.splitlines() == pictures.stored.read(pictures.RESULTS)[name]["lines"], "run make pictures"
