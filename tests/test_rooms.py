"""Each room imports only the rooms below it, and importing classgap stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import classgap

SOURCE = Path(classgap.__file__).parent

# What a room may import of classgap, at module level; imports inside functions are a convenience's way up.
ALLOWED = {
    "functional": set(),
    "distributed": set(),
    "whole_file": set(),
    "features": set(),
    "registry": set(),
    "state": {"functional", "distributed"},
    "losses": {"functional", "state", "distributed"},
    "theory": {"functional"},
    "audit": {"functional", "theory", "features", "distributed", "registry", "whole_file"},
    "report": {"audit", "whole_file"},
    "models": {"features", "registry"},
    "data": {"distributed", "registry", "whole_file"},
    "methods": {"functional", "state", "losses", "features", "distributed", "models", "data", "registry", "whole_file"},
    "engine": {"distributed", "features", "registry", "whole_file", "losses", "models", "data", "methods", "audit"},
    "testing": {"losses", "distributed"},
    "cli": {"audit", "report", "registry", "models", "data", "methods", "engine"},
}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.parse(path.read_text()).body:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "classgap":
            names = [f"classgap.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        rooms |= {name.split(".")[1] for name in names if name.startswith("classgap.")}
    return rooms


FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE or room_of(path) in ALLOWED]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_arrows_point_down(path: Path) -> None:
    room = room_of(path)
    assert imported_rooms(path) <= ALLOWED[room] | {room}


def test_every_room_is_on_the_map() -> None:
    rooms = {room_of(path) for path in SOURCE.rglob("*.py")} - {"__init__", "__main__"}
    assert rooms <= ALLOWED.keys()


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
