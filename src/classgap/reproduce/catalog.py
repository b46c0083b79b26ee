"""Recipes by name."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from classgap._yaml_files import read_yaml
from classgap.registry import suggestion
from classgap.reproduce.schema import PAPERS, Base, Recipe

M = TypeVar("M", bound=BaseModel)

BASES = "_bases"


def recipe_names() -> list[str]:
    """Return the names of all recipes: paper by paper, tables before figures.

    >>> recipe_names()[:2]
    ['mr2-table-1', 'mr2-table-1-release']
    """
    return sorted((path.stem for path in _folder().glob("*.yaml") if path.stem != BASES), key=_place)


@cache
def load_recipe(name: str) -> Recipe:
    """Read a recipe of the package, or a YAML file by its path.

    Raises:
        ValueError: If there is no such recipe, or the file is invalid.

    >>> load_recipe("mr2-table-3").item
    'Table 3'
    """
    path = Path(name) if name.endswith(".yaml") else _folder() / f"{name}.yaml"
    if not name.endswith(".yaml") and name not in recipe_names():
        raise ValueError(
            f"unknown recipe {name!r}; {suggestion(name, recipe_names())} Run `classgap recipes` for a list."
        )
    content, _ = read_yaml(path)
    return _validate(Recipe, {"name": path.stem, **_mapping(path, content)}, path)


@cache
def load_bases() -> dict[str, Base]:
    """Read the settings that recipes share, by name."""
    path = _folder() / f"{BASES}.yaml"
    content, _ = read_yaml(path)
    return {name: _validate(Base, each, path) for name, each in _mapping(path, content).items()}


def find_base(name: str) -> Base:
    """Return the settings that recipes share under a name.

    Raises:
        ValueError: If there are none.
    """
    bases = load_bases()
    if name not in bases:
        raise ValueError(f"base {name!r} is not in {BASES}.yaml; it has {', '.join(bases)}.")
    return bases[name]


def _folder() -> Path:
    return Path(str(resources.files("classgap.recipes")))


def _mapping(path: Path, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{path} must contain settings as NAME: VALUE, got a {type(content).__name__}.")
    return content


def _validate(kind: type[M], content: Any, path: Path) -> M:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise ValueError(f"{path.name}: {where or 'the recipe'}: {reason}.") from None


def _place(name: str) -> tuple[int, bool, int, str]:
    """Return the sort key of a name such as ``mr2-table-12``."""
    paper, _, rest = name.partition("-")
    number = "".join(filter(str.isdigit, rest.partition("-")[2].partition("-")[0]))
    known = list(PAPERS)
    return known.index(paper) if paper in known else len(known), "figure" in rest, int(number or 0), name
