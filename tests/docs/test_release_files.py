"""Files around the code agree with it."""

import re
import tomllib
from pathlib import Path

import yaml

import classgap as cg

ROOT = Path(__file__).parents[2]


def test_citation_names_the_three_papers_and_their_losses():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == "Apache-2.0"
    losses = [re.search(r"classgap\.losses\.(\w+)", paper["notes"])[1] for paper in citation["references"]]
    assert losses == ["MR2Loss", "ELMLoss", "LargeMarginDiscriminativeLoss"]
    assert all(paper["authors"] and paper["year"] and paper["title"] for paper in citation["references"])
    assert citation["version"] == cg.__version__
    identifiers = [each["value"] for paper in citation["references"] for each in paper["identifiers"]]
    assert identifiers == ["arXiv:2602.00205", "arXiv:2204.13208", "arXiv:2405.18499"]
    for loss in losses:
        assert hasattr(cg.losses, loss)


def test_workflows_call_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    workflows = {path.stem: path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    assert set(workflows) == {"tests", "docs", "publish", "audit-dependencies"}
    for name, text in workflows.items():
        assert yaml.safe_load(text)["permissions"] == {"contents": "read"}, name
        assert set(re.findall(r"run: make (\w+)", text)) <= targets


def test_the_promised_python_versions_are_those_that_are_tested():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    versions = workflow["jobs"]["tests"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: "
    assert [each.removeprefix(prefix) for each in project["classifiers"] if each.startswith(prefix)] == versions
    assert project["requires-python"] == f">={versions[0]}"


def test_the_oldest_promised_torch_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (oldest,) = (each.removeprefix("torch>=") for each in project["dependencies"] if each.startswith("torch>="))
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]["oldest-torch"]["steps"]
    commands = " ".join(step.get("run", "") for step in steps)
    assert f"'torch=={oldest}.*'" in commands
    files = re.findall(r"tests/\S+\.py", commands)
    assert files
    assert all((ROOT / name).is_file() for name in files)


def test_the_changelog_starts_with_the_release_of_this_version():
    heading = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    assert heading.split()[0] in {"Unreleased", re.sub(r"(a|b|rc|\.dev)\d+$", "", cg.__version__)}


def test_nothing_claims_that_the_package_is_on_an_index():
    # An extra, 'classgap[vision]', is fine: pip adds its packages to the classgap that is installed.
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in ("docs", "examples", "src", ".github"):
        pages += [path for path in (ROOT / folder).rglob("*") if path.suffix in {".md", ".py", ".yml", ".ipynb"}]
    claims = re.compile(r"pip install (-\S+ )*[\"']?classgap(?!\[)\b")
    assert [str(path) for path in pages if claims.search(path.read_text(encoding="utf-8"))] == []
    assert "pip install ." in pages[0].read_text(encoding="utf-8")


def test_no_merge_conflict_is_left():
    marker = re.compile(r"^(<{7} |={7}$|>{7} )", flags=re.MULTILINE)
    folders = [ROOT / name for name in ("src", "docs", "tests", "benchmarks", "examples", "experiments", ".github")]
    paths = [*ROOT.glob("*.*"), *(path for folder in folders for path in folder.rglob("*.*"))]
    endings = {".md", ".py", ".yaml", ".yml", ".toml", ".html", ".css", ".txt"}
    texts = [path for path in paths if path.suffix in endings and path.is_file()]
    assert [str(path) for path in texts if marker.search(path.read_text(encoding="utf-8", errors="replace"))] == []
