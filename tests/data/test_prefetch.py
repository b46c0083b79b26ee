import threading
import time

import pytest

from classgap.data.prefetch import prefetched


def alive() -> int:
    return sum(each.name.startswith("classgap-prefetch") for each in threading.enumerate())


def test_results_come_in_order_and_no_more_than_asked_are_made_ahead() -> None:
    made: list[int] = []

    def work(number: int) -> int:
        made.append(number)
        return number * number

    stream = prefetched(work, range(100), ahead=3)
    assert [next(stream) for _ in range(4)] == [0, 1, 4, 9]
    time.sleep(0.05)
    assert made == list(range(7))
    stream.close()
    assert alive() == 0


def test_work_goes_on_while_the_caller_is_busy() -> None:
    ready = threading.Event()

    def work(number: int) -> int:
        if number == 1:
            ready.set()
        return number

    stream = prefetched(work, range(3))
    assert next(stream) == 0
    assert ready.wait(5)  # the second was made though nobody asked for it
    assert list(stream) == [1, 2]


def test_an_error_is_raised_where_its_result_is_asked_for() -> None:
    stream = prefetched(lambda number: 6 // number, [3, 2, 0, 1])
    assert [next(stream), next(stream)] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        next(stream)
    assert alive() == 0


def test_nothing_gives_nothing() -> None:
    assert list(prefetched(abs, [])) == []
    assert alive() == 0
