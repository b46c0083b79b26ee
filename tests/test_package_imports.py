"""Each package imports only the packages below it, anywhere in a file, and importing classgap stays light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import classgap

SOURCE = Path(classgap.__file__).parent

# The packages that each package may import. Imports inside functions and under TYPE_CHECKING count too.
_BASE = {
    "_array_files",
    "_atomic_write",
    "_csv_cells",
    "_eval_mode",
    "_regular_files",
    "_synonyms",
    "_tensor_files",
    "_text_checksums",
    "_threads",
    "_version",
    "_yaml_files",
}
ALLOWED = {
    "_array_files": set(),
    "_atomic_write": set(),
    "_exit_codes": set(),
    "_csv_cells": set(),
    "_eval_mode": set(),
    "_regular_files": set(),
    "_synonyms": set(),
    "_tensor_files": set(),
    "_text_checksums": {"_atomic_write", "_regular_files"},
    "_threads": set(),
    "_version": set(),
    "_yaml_files": {"_regular_files"},
    "functional": set(),
    "distributed": set(),
    "features": set(),
    "registry": set(),
    "state": {"functional", "distributed"},
    "losses": {"functional", "state", "distributed"},
    "theory": {"functional"},
    "audit": {"functional", "theory", "features", "distributed", "registry", *_BASE},
    "recipes": set(),
    "reproduce": {"audit", "data", "engine", "inference", "recipes", "registry", *_BASE},
    "report": {"audit", "remedies", "reproduce", *_BASE},
    "models": {"features", "registry", "_tensor_files", "_text_checksums", "_yaml_files"},
    "data": {"functional", "distributed", "registry", *_BASE},
    "methods": {"functional", "state", "losses", "features", "distributed", "models", "data", "registry", *_BASE},
    "engine": {
        "functional",
        "distributed",
        "features",
        "registry",
        "losses",
        "models",
        "data",
        "methods",
        "audit",
        *_BASE,
    },
    "remedies": {
        "audit",
        "data",
        "distributed",
        "engine",
        "losses",
        "features",
        "methods",
        "models",
        "registry",
        *_BASE,
    },
    "inference": {"audit", "data", "distributed", "engine", "features", "registry", "remedies", *_BASE},
    "testing": {"losses", "distributed"},
    "integrations": {
        "audit",
        "data",
        "distributed",
        "engine",
        "features",
        "functional",
        "losses",
        "methods",
        "models",
        "registry",
        "remedies",
        "report",
        *_BASE,
    },
    "cli": {
        "_exit_codes",
        "audit",
        "report",
        "remedies",
        "reproduce",
        "inference",
        "registry",
        "models",
        "data",
        "methods",
        "engine",
        *_BASE,
    },
}

# Exceptions: convenience methods that import a higher package when they are called.
CONVENIENCES = {
    "audit/audit.py": {"report"},  # Audit.to_html, …
    "audit/diff.py": {"report"},  # AuditDiff.to_html, …
    "audit/gate_results.py": {"report"},  # str(GateResult)
    "audit/history.py": {"report"},  # History.to_html, …
    "remedies/results.py": {"report"},  # FixResult.to_html, …
}
UNKNOWN = "a module named at run time"
IMPORT_BY_NAME = {"models/optional.py"}  # imports timm, torchvision, …

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_packages(code: str, *, inside_functions: bool = True) -> set[str]:
    """Return the packages that a file imports anywhere, or anywhere but in functions."""
    packages: set[str] = set()
    rest: list[ast.AST] = [ast.parse(code)]
    while rest:
        node = rest.pop()
        if inside_functions or not isinstance(node, FUNCTIONS):
            rest += ast.iter_child_nodes(node)
            packages |= _imported_by(node)
    return packages


def _imported_by(node: ast.AST) -> set[str]:
    """The packages that one node imports, whether by a statement or by a name in a string."""
    match node:
        case ast.Import():
            names = [alias.name for alias in node.names]
            if "classgap" in names:
                raise AssertionError(f"line {node.lineno}: import a package of classgap, not classgap")
        case ast.ImportFrom(level=level) if level:
            raise AssertionError(f"line {node.lineno}: imports are absolute here")
        case ast.ImportFrom(module="classgap" | "importlib"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        case ast.ImportFrom():
            names = [node.module or ""]
        case ast.Constant(value=str(text)) if re.fullmatch(r"classgap(\.\w+)+(:\w+)?", text):  # "classgap.engine"
            names = [text.partition(":")[0]]
        case ast.Name(id="__import__" | "exec" | "eval") | ast.Attribute(attr="import_module"):
            return {UNKNOWN}
        case _:
            return set()
    by_name = any(re.fullmatch(r"importlib(\.(import_module|util|machinery))?|pkgutil|runpy", name) for name in names)
    packages = {name.split(".")[1] for name in names if name.startswith("classgap.")}
    return packages | ({UNKNOWN} if by_name else set())


FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE or package_of(path) in ALLOWED]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    package, file = package_of(path), path.relative_to(SOURCE).as_posix()
    allowed = ALLOWED[package] | {package} | ({UNKNOWN} if file in IMPORT_BY_NAME else set())
    code = path.read_text()
    assert imported_packages(code) <= allowed | CONVENIENCES.get(file, set())
    assert imported_packages(code, inside_functions=False) <= allowed


@pytest.mark.parametrize(
    "code",
    [
        "from classgap.engine import Run",
        "import classgap.engine.run",
        "from classgap import engine",
        "def f():\n    from classgap.engine import Run",
        "class A:\n    def f(self):\n        if True:\n            import classgap.engine as e",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from classgap.engine import Run",
        "try:\n    from classgap.engine import Run\nexcept ImportError:\n    pass",
        "import sys\nsys.modules['classgap.engine.run']",
    ],
)
def test_imports_are_found_anywhere_in_a_file(code: str) -> None:
    assert imported_packages(code) == {"engine"}


@pytest.mark.parametrize(
    "code",
    [
        "import importlib\nimportlib.import_module(name)",
        "import importlib\nimportlib.import_module('.engine', 'classgap')",
        "import importlib as i\nload = i.import_module",
        "def f():\n    from importlib import import_module as load\n    return load('classgap.' + name)",
        "import importlib.util\nimportlib.util.find_spec(name)",
        "import pkgutil\npkgutil.resolve_name(name)",
        "import runpy\nrunpy.run_module(name)",
        "__import__(name)",
        "exec('from classgap.engine import Run')",
    ],
)
def test_a_module_named_at_run_time_is_found(code: str) -> None:
    assert imported_packages(code) == {UNKNOWN}


@pytest.mark.parametrize(
    "code",
    [
        "import importlib\nimportlib.import_module('classgap.engine')",
        "from importlib import import_module\ndef f():\n    return import_module('classgap.engine.run').Run",
        "__import__('classgap.engine')",
        "import pkgutil\npkgutil.resolve_name('classgap.engine:Run')",
    ],
)
def test_a_module_named_in_a_string_is_found(code: str) -> None:
    assert imported_packages(code) == {UNKNOWN, "engine"}


@pytest.mark.parametrize("code", ["from importlib import metadata, resources", "from importlib.resources import files"])
def test_reading_the_files_of_a_package_is_no_import_by_name(code: str) -> None:
    assert imported_packages(code) == set()


@pytest.mark.parametrize("code", ["import classgap", "import classgap as cg", "from . import engine"])
def test_imports_that_hide_the_package_are_rejected(code: str) -> None:
    with pytest.raises(AssertionError, match="line 1"):
        imported_packages(code)


def test_conveniences_are_imported_inside_functions_only() -> None:
    late, early = "def f():\n    from classgap import report", "from classgap import report"
    assert imported_packages(late) == imported_packages(early) == {"report"}
    assert imported_packages(late, inside_functions=False) == set()
    assert imported_packages(early, inside_functions=False) == {"report"}


def test_every_package_is_listed() -> None:
    packages = {package_of(path) for path in SOURCE.rglob("*.py")} - {"__init__", "__main__"}
    assert packages == ALLOWED.keys()


def test_conveniences_are_real() -> None:
    for name, packages in CONVENIENCES.items():
        assert packages <= imported_packages((SOURCE / name).read_text())
    for name in IMPORT_BY_NAME:
        assert UNKNOWN in imported_packages((SOURCE / name).read_text())


def test_only_one_module_touches_torch_distributed() -> None:
    touching = [path.name for path in SOURCE.rglob("*.py") if "torch.distributed" in _code(path)]
    assert touching == ["distributed.py"]


def _code(path: Path) -> str:
    """The file's imports and names, without docstrings and comments."""
    tree = ast.parse(path.read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = [alias.name for node in imports for alias in node.names]
    modules = [node.module or "" for node in imports if isinstance(node, ast.ImportFrom)]
    attributes = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return "\n".join(names + modules + attributes)


def test_import_needs_torch_and_numpy_only() -> None:
    heavy = "sklearn scipy matplotlib jinja2 rich tyro yaml safetensors mnist1d timm torchvision transformers pandas"
    code = f"import sys, classgap; print([m for m in {heavy.split()!r} if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
