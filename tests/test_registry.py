from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from torch import Tensor

from classgap.registry import Entry, Registry, convert, validate


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("3", int, 3),
        ("1e-3", float, 1e-3),
        ("3", float | str, 3.0),
        ("auto", float | str, "auto"),
        ("0.5", str | float | Sequence[float] | Tensor, 0.5),
        ("none", float | None, None),
        ("None", str | None, None),
        ("none", str, "none"),
        ("fast", Literal["fast", "exact"], "fast"),
        ("a/b", Path, Path("a/b")),
        *((word, bool, True) for word in ("true", "Yes", "on", "1")),
        *((word, bool, False) for word in ("false", "no", "OFF", "0")),
    ],
)
def test_option_text_is_converted_to_the_annotated_type(text: str, kind: Any, expected: object) -> None:
    found = convert("option", text, kind)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("half", float, "float"),
        ("2.5", int, "int"),
        ("perhaps", bool, "bool"),
        ("x", int | None, "int or none"),
        ("slow", Literal["fast", "exact"], "one of 'fast', 'exact'"),
        (True, int, "int"),
        (True, float | None, "float or none"),
        (3, str, "str"),
    ],
)
def test_values_of_another_type_are_rejected_by_name(value: object, kind: Any, expected: str) -> None:
    with pytest.raises(ValueError, match="shape circle: radius") as error:
        validate("shape circle: radius", value, kind)
    assert f"must be {expected}; got {value!r}." in str(error.value)


def _circle(*, radius: float = 1.0) -> float:
    return radius


def _image(path: str, *, size: int | None = None) -> tuple[str, int | None]:
    return path, size


SHAPES: Registry[Any] = Registry(
    "shape", [Entry("circle", "A circle.", _circle), Entry("image", "An image.", _image, argument="PATH")]
)


def test_build_passes_argument_and_options() -> None:
    assert SHAPES.build("circle:radius=2") == 2.0
    assert SHAPES.build("image:C:/a:size=3") == ("C:/a", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cirle", "'cirle'; did you mean 'circle'"),
        ("zzz", "'zzz'; choose from circle, image"),
        ("circle:radios=2", "'radios'; did you mean 'radius'"),
        ("circle:radius=big", "shape circle: radius .*got 'big'"),
        ("circle:a", "circle takes no argument; got 'a'"),
        ("image", "image:PATH"),
        ("circle:radius=1:radius=2", "sets radius twice"),
        (":radius=2", "must start with a name"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SHAPES.build(text)
