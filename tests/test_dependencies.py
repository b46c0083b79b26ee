"""pyproject.toml declares exactly the packages that the sources import."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import classgap

SOURCE = Path(classgap.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]

# Packages that are imported by a name given as a string, or by a library that needs them: accelerate by Trainer.
BY_NAME = {"accelerate", "timm", "open_clip_torch", "tensorboard"}

# Not in the development environment.
OPTIONAL = {"mlflow": ["mlflow-skinny"], "sentence_transformers": ["sentence-transformers"]}


def distribution(requirement: str) -> str:
    return re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def imported(*, optional: bool = True) -> set[str]:
    """The distributions that any file of the package imports, anywhere in it.

    Args:
        optional: include imports in a ``try`` that handles their absence.
    """
    modules = set()
    rest: list[ast.AST] = [ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module.split(".")[0])
        if optional or not (isinstance(node, ast.Try) and "ImportError" in map(_exception, node.handlers)):
            rest += ast.iter_child_nodes(node)
    providers = {**importlib.metadata.packages_distributions(), **OPTIONAL}
    foreign = modules - set(sys.stdlib_module_names) - {"classgap"}
    return {providers[module][0].lower().replace("_", "-") for module in foreign}


def _exception(handler: ast.ExceptHandler) -> str:
    return "" if handler.type is None else ast.unparse(handler.type)


def test_packages_that_are_needed_without_a_choice_are_no_extras() -> None:
    base = {distribution(each) for each in PROJECT["dependencies"]}
    assert imported(optional=False) <= base
    assert "pandas" in imported() - imported(optional=False)


def test_every_import_is_declared_and_every_declared_package_is_imported() -> None:
    base = {distribution(each) for each in PROJECT["dependencies"]}
    extras = {
        distribution(each)
        for name, group in PROJECT["optional-dependencies"].items()
        if name != "dev"
        for each in group
    }
    used = imported() | {name.replace("_", "-") for name in BY_NAME}
    assert used == base | extras


def test_the_version_is_written_once() -> None:
    assert "version" in PROJECT["dynamic"]
    assert importlib.metadata.version("classgap") == classgap.__version__


def test_constraints_pin_every_package_that_is_installed() -> None:
    lines = (Path(__file__).parents[1] / "constraints.txt").read_text().splitlines()
    pins = {
        canonicalize_name(name): version for name, version in (line.split("==") for line in lines if line[0] != "#")
    }
    # Requirements of requirements, each with the extras it is wanted with.
    rest = [(Requirement("classgap[dev]"), "")]
    seen, needed = set(), {}
    while rest:
        requirement, extra = rest.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in ("", *requirement.extras):
            if (name, wanted) not in seen:
                seen.add((name, wanted))
                found = importlib.metadata.distribution(name)
                needed[name] = found.version
                rest += [(Requirement(text), wanted) for text in found.requires or ()]
    del needed["classgap"]
    assert needed == {name: pins.get(name) for name in needed}


def test_releases_of_lightning_with_malware_are_excluded() -> None:
    extras = PROJECT["optional-dependencies"]
    found = [Requirement(each) for extra in ("lightning", "dev") for each in extras[extra] if "lightning" in each]
    assert len(found) == 2
    for requirement in found:
        allowed = [each for each in ("2.6.1", "2.6.2", "2.6.3", "2.6.6") if requirement.specifier.contains(each)]
        assert allowed == ["2.6.1", "2.6.6"]
