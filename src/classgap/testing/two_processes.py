"""Checks that several processes give the value, gradients and state of one process on their global batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from classgap.testing.loss_case import LossCase
from classgap.testing.processes import Processes

STEPS = 3
Arrays = dict[str, np.ndarray[Any, Any]]


def check_processes_work_as_one(case: LossCase, processes: Processes) -> None:
    """Check even, uneven and empty shards over successive batches."""
    for sizes in ((8, 8), (11, 5), (1, 15), (16, 0)):
        expected = _train(case, 0, sum(sizes), sum(sizes))
        results = processes.run(_train_shard, case, sizes)
        first = 0
        for size, result in zip(sizes, results, strict=True):
            _compare_numbers(result, expected, results[0], sizes)
            for name in ("logits", "features"):
                # Each process back-propagates W times its part, as DistributedDataParallel divides by W.
                mine = expected["gradients"][name][first : first + size]
                _close(result["gradients"][name] / len(sizes), mine, f"gradient of {name} with shards {sizes}")
            first += size
        for name in expected["gradients"].keys() - {"logits", "features"}:
            averaged = sum(result["gradients"][name] for result in results) / len(sizes)
            _close(averaged, expected["gradients"][name], f"averaged gradient of {name} with shards {sizes}")


def check_bad_input_on_one_process(case: LossCase, processes: Processes) -> None:
    """Invalid input on one process raises on all of them and changes nothing."""
    for message, unchanged in processes.run(_call_with_invalid_input, case):
        assert message, "a process accepted a batch that another rejected"
        assert unchanged, "a rejected batch changed the state"


def _compare_numbers(result: dict[str, Any], expected: dict[str, Any], first: dict[str, Any], sizes: Any) -> None:
    for kind in ("values", "terms", "state"):
        for name, number in result[kind].items():
            where = f"{kind} {name} with shards {sizes}"
            _close(number, expected[kind][name], where)
            assert np.array_equal(number, first[kind][name]), f"{where} differs between processes"


def _close(ours: Any, theirs: Any, what: str) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=what)


def _train_shard(case: LossCase, sizes: tuple[int, ...]) -> dict[str, Any]:
    from classgap.distributed import rank

    first = sum(sizes[: rank()])
    return _train(case, first, first + sizes[rank()], sum(sizes))


def _train(case: LossCase, start: int, stop: int, size: int) -> dict[str, Any]:
    loss = case.build()
    values: Arrays = {}
    for step in range(STEPS):
        inputs = case.inputs(step, size=size).part(slice(start, stop))
        value = case.call(loss, inputs)
        values[f"of step {step}"] = value.detach().cpu().numpy()
    value.backward()
    return {
        "values": values,
        "terms": _arrays(loss.terms),
        "state": _arrays(loss.state_dict()),
        "gradients": _arrays(inputs.gradients(loss)),
    }


def _call_with_invalid_input(case: LossCase) -> tuple[str, bool]:
    from classgap.distributed import rank

    loss = case.build()
    case.call(loss, case.inputs(0))
    before = _arrays(loss.state_dict())
    inputs = case.inputs(1)
    targets = inputs.targets if rank() == 0 else torch.full_like(inputs.targets, case.num_classes)
    try:
        case.call(loss, inputs, targets=targets)
    except ValueError as error:
        after = _arrays(loss.state_dict())
        return str(error), all(np.array_equal(after[name], array) for name, array in before.items())
    return "", False


def _arrays(tensors: dict[str, torch.Tensor]) -> Arrays:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
