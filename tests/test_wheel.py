"""The wheel works away from the source tree; the source distribution has every file of the repository but results/."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = """
import pathlib, sys, torch
import classgap as cg
assert str(pathlib.Path(cg.__file__)).startswith(sys.argv[1]), cg.__file__
targets = torch.arange(60) % 3
cg.Audit.from_predictions(torch.randn(60, 3), targets).to_html(sys.argv[2])
from classgap.reproduce.catalog import load_bases, load_recipe, recipe_names
assert len(recipe_names()) >= 43 and load_bases() and load_recipe("mr2-table-3").item == "Table 3"
cg.losses.MR2Loss(3)(torch.randn(60, 3), targets, features=torch.randn(60, 4))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("classgap-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_it_contains_only_code_and_types(unpacked: Path) -> None:
    assert (unpacked / "classgap" / "py.typed").exists()
    assert {path.name.split("-")[0] for path in unpacked.iterdir()} == {"classgap"}


def test_the_description_has_absolute_links_only(unpacked: Path) -> None:
    metadata = importlib.metadata.Distribution.at(next(unpacked.glob("*.dist-info"))).metadata
    description, readme = metadata.get_payload(), (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", description)
    assert len(targets) == len(re.findall(r"\]\(([^)]+)\)", readme)) > 20
    repository = "https://github.com/classgap/classgap/blob/"
    for target in targets:
        assert target.startswith("https://"), target
        if target.startswith(repository):
            assert (ROOT / target.removeprefix(repository).partition("/")[2].partition("#")[0]).exists(), target
    assert f"https://raw.githubusercontent.com/classgap/classgap/v{metadata['Version']}/docs/imagenet.png" in targets
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_it_declares_the_evaluator_of_mlflow(unpacked: Path) -> None:
    found = importlib.metadata.Distribution.at(next(unpacked.glob("*.dist-info"))).entry_points
    (entry,) = found.select(group="mlflow.model_evaluator")
    assert (entry.name, entry.load().__name__) == ("classgap", "ClassGapEvaluator")


def test_it_works_away_from_the_source_tree(unpacked: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    subprocess.run([sys.executable, "-c", CODE, str(unpacked), str(page)], check=True, env=environment, cwd=tmp_path)
    assert "<html" in page.read_text()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="compares with the files of the repository")
def test_the_source_distribution_has_every_file_but_results(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    tracked = {name for name in listed if name and (ROOT / name).exists() and not name.startswith(("results/", ".ci/"))}
    assert tracked - names == set()
    assert {name for name in names - tracked if "__pycache__" not in name} == {"PKG-INFO"}
