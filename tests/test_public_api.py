"""`import classgap as cg` offers what people type, lazily; old names are gone everywhere."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import classgap as cg

ROOT = Path(__file__).parents[1]

PUBLIC = ["Audit", "AuditAccumulator", "AuditDiff", "AuditSettings", "FeatureTap", "Fix", "FixResult", "TrainConfig"]
PUBLIC += ["compare", "fix", "load_fix", "train", "gate", "GateResult", "GateRules", "History", "history"]
PUBLIC += ["load_run", "LoadedRun", "PredictResult"]
PACKAGES = ["data", "functional", "losses", "methods", "models", "theory"]


@pytest.mark.parametrize("name", [*PUBLIC, *PACKAGES])
def test_public_names_are_found_and_listed(name: str) -> None:
    assert name in dir(cg)
    assert name in cg.__all__
    assert getattr(cg, name) is not None


def test_unknown_names_raise_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="Audits"):
        _ = cg.Audits


def test_importing_classgap_imports_nothing_heavy() -> None:
    code = "import sys, classgap; print(sorted({'torch', 'numpy', 'pydantic', 'pandas'} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


MODULES = ["classgap", *(f"classgap.{name}" for name in PACKAGES)]
MODULES += [f"classgap.{name}" for name in ("audit", "engine", "inference", "remedies", "report", "testing")]
MODULES += [f"classgap.integrations.{name}" for name in ("huggingface", "lightning", "sklearn")]


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_is_documented_by_an_example(name: str) -> None:
    if name.endswith(("huggingface", "lightning")):
        pytest.importorskip("transformers" if name.endswith("huggingface") else "lightning")
    module = importlib.import_module(name)
    public = {each: getattr(module, each) for each in module.__all__}
    described = {each: found for each, found in public.items() if inspect.isclass(found) or inspect.isfunction(found)}
    assert [each for each, found in described.items() if ">>> " not in (inspect.getdoc(found) or "")] == []
    for each, function in described.items():
        if inspect.isfunction(function):
            parameters = {*inspect.signature(function).parameters, "return"}
            assert parameters <= function.__annotations__.keys(), f"{each} has arguments without types"


# Patterns of names that were replaced: flags, arguments, fields and exceptions, not English words.
OLD_NAMES = [
    r"--(batch|accumulate|clip|validation|select|sampling|interpolate|force|warmup|level|baseline)(?![\w-])",
    r"classgap compare[^\n]* --(seeds|runs-per-side)\b",
    r"\b(RefusedBatch|EmptyClass|NonFiniteLoss)\b(?!Error)",
    r"\bStopped\b",
    r"\.needs\b|\bneeds=",
    r"\bclass_weights=",
    r"\b(by_chance|over_seeds|mean_ratio)\b(?<!expected_by_chance)",
    r"\.farthest\b|\"farthest\"|\.paid\b|\"paid\"|\.certain\b|\"certain\"",
    r"\boverall\.samples\b|\"replicates\"|\breplicates=",
    r"\bMR2Loss\([^)]*\b(norm|bank)=",
    r"\b[A-Z]\w+\.of\(",
    r":(lt|noise)=\d",
    r"\blevel=0\.\d",
    r"\bClassLossTrainer\b|--(search-dir|no-report)\b|\breport=(True|False)",
    r"classgap reproduce[^\n]* --store\b",
    r"\b(checked_settings|write_whole|whole_file|from_first|gather_values|positive_counts|whole_number)\b",
]
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
for place in ("src", "docs", "examples", "experiments", "benchmarks", ".github"):
    FILES += [path for path in (ROOT / place).rglob("*") if path.suffix in (".py", ".md", ".html", ".yaml")]
FILES = [path for path in FILES if not path.name.endswith("import_long_runs.py")]  # converts settings of an old version


@pytest.mark.parametrize("pattern", OLD_NAMES)
def test_old_names_are_gone(pattern: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in FILES
        for match in re.finditer(pattern, path.read_text(encoding="utf-8"))
    ]
    assert not found
