"""Two real processes; the losses' own checks are in the conformance suite."""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from classgap.distributed import Shards, all_agree, all_reduce_sum, gather_rows, rank, world_size
from classgap.features import FeatureTap
from classgap.losses import MR2Loss
from classgap.testing import Processes

CPU = torch.device("cpu")


def gather_and_sum(sizes: tuple[int, ...]) -> dict:
    shards = Shards.from_batch_size(sizes[rank()], CPU)
    local = torch.full((sizes[rank()], 2), float(rank() + 1), requires_grad=True)
    whole = shards.gather(local)
    total, count = shards.sums((whole * (rank() + 1)).sum(), torch.tensor(float(sizes[rank()])))
    total.backward()
    return {
        "whole": whole.detach().numpy(),
        "mine": (shards.mine.start, shards.mine.stop),
        "total": total.item(),
        "count": count.item(),
        "gradient": local.grad.numpy(),
    }


@pytest.mark.parametrize("sizes", [(2, 2), (3, 1), (0, 2)])
def test_gather_and_sum(processes: Processes, sizes: tuple[int, int]) -> None:
    results = processes.run(gather_and_sum, sizes)
    expected = [[1.0, 1.0]] * sizes[0] + [[2.0, 2.0]] * sizes[1]
    for result, start in zip(results, (0, sizes[0]), strict=True):
        assert result["whole"].tolist() == expected
        assert result["mine"][0] == start
        assert result["count"] == sum(sizes)
        # Process r adds (r + 1) · Σ whole; each row's gradient is (1 + 2), times 2 processes.
        assert result["total"] == 3 * sum(map(sum, expected))
        assert (result["gradient"] == 6).all()


def rows_in_pieces(sizes: tuple[int, int], chunk_bytes: int) -> tuple:
    rows = torch.arange(3 * sizes[rank()], dtype=torch.int32).view(-1, 3) + 100 * rank()
    return gather_rows(rows, chunk_bytes=chunk_bytes).tolist(), all_reduce_sum(rows.sum()).item()


@pytest.mark.parametrize("sizes", [(5, 5), (7, 2), (0, 3)])
@pytest.mark.parametrize("chunk_bytes", [1, 24, 10**6])  # a row has 12 bytes
def test_rows_are_gathered_in_pieces(processes: Processes, sizes: tuple[int, int], chunk_bytes: int) -> None:
    expected = [[3 * row + 100 * process + k for k in range(3)] for process in (0, 1) for row in range(sizes[process])]
    for rows, summed in processes.run(rows_in_pieces, sizes, chunk_bytes):
        assert rows == expected
        assert summed == sum(map(sum, expected))


def agree(ok: tuple[bool, bool]) -> bool:
    return all_agree(ok[rank()])


def test_all_agree(processes: Processes) -> None:
    assert processes.run(agree, (True, True)) == [True, True]
    assert processes.run(agree, (True, False)) == [False, False]


def test_one_process_needs_no_group() -> None:
    local = torch.randn(3, 2)
    shards = Shards.from_batch_size(3, CPU)
    assert (world_size(), rank(), shards.total, shards.mine) == (1, 0, 3, slice(0, 3))
    assert shards.gather(local) is local
    assert shards.sums(local) == (local,)
    assert all_agree(True)
    assert not all_agree(False)


def parameters_after_training(sizes: tuple[int, ...]) -> list:
    """Five steps of a real network without batch norm, under the real DistributedDataParallel if there are several."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    trained = DistributedDataParallel(model) if world_size() > 1 else model
    tap, loss = FeatureTap(trained), MR2Loss(3, strength=0.5)
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
    start = sum(sizes[: rank()])
    rows = slice(start, start + sizes[rank()]) if world_size() > 1 else slice(None)
    for step in range(5):
        generator = torch.Generator().manual_seed(step)
        x, y = torch.randn(12, 4, generator=generator), torch.randint(3, (12,), generator=generator)
        optimizer.zero_grad()
        loss(trained(x[rows]), y[rows], features=tap.features).backward()
        optimizer.step()
    return [parameter.detach().numpy() for parameter in model.parameters()]


@pytest.mark.parametrize("sizes", [(6, 6), (9, 3)])
def test_a_network_trains_on_two_processes_as_on_one(processes: Processes, sizes: tuple[int, int]) -> None:
    alone = parameters_after_training((12,))
    for result in processes.run(parameters_after_training, sizes):
        for ours, expected in zip(result, alone, strict=True):
            torch.testing.assert_close(torch.tensor(ours), torch.tensor(expected), rtol=1e-4, atol=1e-5)


def compiled_and_plain(step: int) -> tuple[float, float]:
    """The same batch through a compiled loss (in pieces, as collectives break the graph) and a plain one."""
    generator = torch.Generator().manual_seed(step + rank())
    logits, features = torch.randn(6, 3, generator=generator), torch.randn(6, 4, generator=generator)
    targets = torch.randint(3, (6,), generator=generator)
    compiled = torch.compile(MR2Loss(3, strength=0.5), backend="aot_eager")
    plain = MR2Loss(3, strength=0.5)
    return tuple(float(loss(logits, targets, features=features)) for loss in (compiled, plain))


def test_compiled_losses_work_on_two_processes(processes: Processes) -> None:
    results = processes.run(compiled_and_plain, 0)
    assert results[0] == results[1]
    assert results[0][0] == pytest.approx(results[0][1], rel=1e-5)


def fail_on_rank_one() -> None:
    if rank() == 1:
        raise KeyError("on purpose")


def test_a_failing_job_reports_the_process_and_its_traceback(processes: Processes) -> None:
    with pytest.raises(RuntimeError, match=r"process 1:(.|\n)*KeyError: 'on purpose'"):
        processes.run(fail_on_rank_one)
    assert processes.run(world_size) == [2, 2]


JOINED = """
import torch
from torch.distributed import distributed_c10d as group
from classgap.distributed import destroy, init_from_env
assert init_from_env(torch.device("cpu"))
print(group._get_default_group()._get_backend(torch.device("cpu")).options._timeout.total_seconds())
destroy()
"""


def test_processes_wait_for_hours_while_the_first_one_decodes() -> None:
    launched = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    done = subprocess.run([*launched, "--no-python", sys.executable, "-c", JOINED], capture_output=True, text=True)
    assert float(done.stdout) >= 24 * 3600, done.stderr
