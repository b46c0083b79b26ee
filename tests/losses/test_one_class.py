"""The losses on features with a single class, where no sample has a stranger to be compared with."""

import pytest
from feature_cases import ONE_CLASS_CASES

from classgap.testing import CHECKS


@pytest.mark.parametrize("check", ["value", "gradient", "reductions", "degenerate_batches"])
@pytest.mark.parametrize("name", ONE_CLASS_CASES)
def test_promise_with_one_class(name: str, check: str) -> None:
    CHECKS[check](ONE_CLASS_CASES[name])
