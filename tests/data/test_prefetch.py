import threading
import time

import pytest

from classgap.data.prefetch import prefetch


def alive() -> int:
    return sum(each.name.startswith("classgap-prefetch") for each in threading.enumerate())


def test_results_are_in_order_and_limited_ahead() -> None:
    made: list[int] = []

    def work(number: int) -> int:
        made.append(number)
        return number * number

    stream = prefetch(work, range(100), ahead=3)
    assert [next(stream) for _ in range(4)] == [0, 1, 4, 9]
    time.sleep(0.05)
    assert made == list(range(7))
    stream.close()
    assert alive() == 0


def test_work_continues_while_the_caller_is_busy() -> None:
    ready = threading.Event()

    def work(number: int) -> int:
        if number == 1:
            ready.set()
        return number

    stream = prefetch(work, range(3))
    assert next(stream) == 0
    assert ready.wait(5)  # the second is computed before it is requested
    assert list(stream) == [1, 2]


def test_errors_are_raised_with_their_result() -> None:
    stream = prefetch(lambda number: 6 // number, [3, 2, 0, 1])
    assert [next(stream), next(stream)] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        next(stream)
    assert alive() == 0


def test_no_items() -> None:
    assert list(prefetch(abs, [])) == []
    assert alive() == 0
