"""Executors that cannot be used are named."""

from __future__ import annotations

import pytest

from classgap.engine.executors import open_executor


def test_an_address_without_a_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("classgap.engine.executors.CONNECT_SECONDS", 1)
    with pytest.raises(ValueError, match="no Dask scheduler"), open_executor("dask:tcp://127.0.0.1:9"):
        pass


def test_dask_workers_with_several_threads_are_named() -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=1, processes=False, threads_per_worker=2, dashboard_address=":0") as threads,
        pytest.raises(ValueError, match="--nthreads 1"),
        open_executor(f"dask:{threads.scheduler_address}"),
    ):
        pass
