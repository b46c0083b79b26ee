"""Read YAML files; damaged, deeply nested and expanding ones are reported in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from classgap._regular_files import check_regular_file

MAX_VALUES = 100_000  # with every alias replaced by its value: nine levels of aliases can stand for 10^9 values


def read_yaml(path: Path) -> tuple[Any, Any]:
    """Return the content of a YAML file, and its tree of nodes, which shows repeated keys.

    Raises:
        ValueError: if the file cannot be read; the message is one line and names it.
    """
    import yaml

    check_regular_file(path)
    try:
        text = path.read_text(encoding="utf-8")
        tree = yaml.compose(text, yaml.SafeLoader)
        if _count_values(tree, {}) > MAX_VALUES:
            raise ValueError(f"it has more than {MAX_VALUES:,} values; write them without aliases")
        return yaml.safe_load(text), tree
    except FileNotFoundError:
        raise ValueError(f"{path} cannot be read: it does not exist.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise ValueError(f"{path} cannot be read: values are nested too deeply.") from None
    # The constructors of yaml raise errors of any type for values such as "!!bool 7".
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:300] or type(error).__name__
        raise ValueError(f"{path} is not valid YAML: {reason}.") from None


def _count_values(node: Any, counts: dict[int, int]) -> int:
    """Count the values below a node with aliases expanded; ``counts`` remembers those of the nodes seen."""
    if node is None or not isinstance(node.value, list):
        return 1
    if id(node) not in counts:
        counts[id(node)] = MAX_VALUES + 1  # found again below itself, the node is endless
        children = [each for entry in node.value for each in (entry if isinstance(entry, tuple) else (entry,))]
        counts[id(node)] = 1 + sum(_count_values(child, counts) for child in children)
    return counts[id(node)]
