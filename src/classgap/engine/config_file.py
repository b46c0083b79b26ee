"""Settings as a YAML file, with every mistake named."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from classgap._atomic_write import atomic_write_text
from classgap.engine.config import TrainConfig
from classgap.registry import convert, suggestion


def write_config(config: TrainConfig, path: Path) -> None:
    """Store all settings; :func:`read_settings` reads them again."""
    import yaml

    atomic_write_text(path, yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True))


def read_settings(path: Path) -> dict[str, Any]:
    """The settings that a YAML file gives, checked by name and type; some may be missing.

    Raises:
        ValueError: if the file, a name or a value is wrong.
    """
    import yaml

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"the configuration file {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"the configuration file {path} cannot be read: {error}") from None
    if found is not None and not isinstance(found, Mapping):
        raise ValueError(f"{path} must hold settings as NAME: VALUE; it holds {type(found).__name__}.")
    try:
        return checked_settings(found or {})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def checked_settings(found: Mapping[Any, Any]) -> dict[str, Any]:
    """Settings with the types that :class:`TrainConfig` asks for; ``weight-decay`` and ``weight_decay`` are the same.

    >>> checked_settings({"data": "digits", "lr": "1e-3", "weight-decay": 0})
    {'data': 'digits', 'lr': 0.001, 'weight_decay': 0.0}
    >>> checked_settings({"epoch": 3})
    Traceback (most recent call last):
    ValueError: there is no setting 'epoch'; did you mean 'epochs'?
    """
    hints = typing.get_type_hints(TrainConfig)
    names = [field.name for field in fields(TrainConfig)]
    settings = {}
    for key, value in found.items():
        name = str(key).replace("-", "_")
        if name not in names:
            raise ValueError(f"there is no setting {str(key)!r}; {suggestion(name, names)}")
        settings[name] = _checked(name, value, hints[name])
    return settings


def _checked(name: str, value: Any, hint: Any) -> Any:
    """``value`` as a value of the annotated type, or a refusal."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return _checked(name, value, next(each for each in typing.get_args(hint) if each is not type(None)))
    if origin is typing.Literal:
        if value not in typing.get_args(hint):
            raise ValueError(f"{name} must be one of {', '.join(typing.get_args(hint))}; got {value!r}.")
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{name} must be a list; got {value!r}.")
        return tuple(_checked(name, each, typing.get_args(hint)[0]) for each in value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in (int, float) and isinstance(value, str):  # YAML takes 1e-3, without a point, for a text
        return convert(name, value, hint)
    if type(value) is not hint:
        raise ValueError(f"{name} must be {hint.__name__}; got {value!r}.")
    return value
