"""``validate_args``: one read from the device per call, and none of the value checks without it."""

import inspect

import pytest
import torch
from test_conformance import CASES
from torch import nn

from classgap import losses
from classgap.losses import ClassLoss, CrossEntropyLoss, InvalidBatchError, LargeMarginDiscriminativeLoss, MR2Loss
from classgap.testing import Processes
from classgap.testing.host_reads import count_host_reads

LOGITS, TARGETS, FEATURES = torch.randn(4, 3), torch.tensor([0, 1, 2, 0]), torch.randn(4, 5)
ALL_LOSSES = [each for each in vars(losses).values() if inspect.isclass(each) and issubclass(each, ClassLoss)]


@pytest.mark.parametrize("cls", ALL_LOSSES)
def test_every_constructor_has_it(cls: type[ClassLoss]) -> None:
    assert inspect.signature(cls).parameters["validate_args"].default is True


@pytest.mark.parametrize("name", CASES)
def test_constructors_pass_it_on(name: str) -> None:
    factory = CASES[name].factory
    assert factory().validate_args
    assert not factory(validate_args=False).validate_args


def test_other_values_are_rejected() -> None:
    with pytest.raises(ValueError, match="validate_args must be True or False, got 1"):
        CrossEntropyLoss(3, validate_args=1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_head_features_and_weights_are_read_at_once(dtype: torch.dtype) -> None:
    loss, head = LargeMarginDiscriminativeLoss(3, 5, centroids="none"), nn.Linear(5, 3).to(dtype)
    given = {"features": FEATURES.to(dtype), "head": head, "sample_weight": torch.ones(4)}
    with count_host_reads() as reads:
        loss.prepare_inputs(LOGITS.to(dtype), TARGETS, given)
    assert reads == {"tolist": 1}


def test_soft_targets_are_read_at_once() -> None:
    with count_host_reads() as reads:
        CrossEntropyLoss(3)(LOGITS, LOGITS.softmax(dim=1))
    assert reads == {"tolist": 1}


def test_ordinary_half_precision_logits_need_no_closer_look() -> None:
    with count_host_reads() as reads:
        CrossEntropyLoss(1000)(torch.full((128, 1000), 4.0, dtype=torch.float16), torch.zeros(128, dtype=torch.long))
    assert reads == {"tolist": 1}


def test_values_are_not_checked_without_it() -> None:
    loss = CrossEntropyLoss(3, validate_args=False)
    assert loss(LOGITS.where(LOGITS > 9, torch.nan), TARGETS).isnan()
    assert loss(LOGITS, TARGETS, sample_weight=-torch.ones(4)) < 0
    with pytest.raises((IndexError, RuntimeError)):
        loss(LOGITS, torch.tensor([0, 1, 2, 3]))


def test_shapes_are_checked_without_it() -> None:
    loss = MR2Loss(3, validate_args=False)
    with count_host_reads() as reads:
        for changes in ({"targets": TARGETS[:2]}, {"logits": LOGITS[:, :2]}, {"features": None}, {"logits": TARGETS}):
            given = {"logits": LOGITS, "targets": TARGETS, "features": FEATURES, **changes}
            with pytest.raises(InvalidBatchError, match=next(iter(changes))):
                loss(given.pop("logits"), given.pop("targets"), **given)
    assert not reads


def reads_of_one_process(validate: bool) -> int:
    loss = CrossEntropyLoss(3, validate_args=validate)
    with count_host_reads() as reads:
        loss(LOGITS, TARGETS)
    return reads["tolist"] + reads["_local_scalar_dense"]


def test_several_processes_check_with_one_read_too(processes: Processes) -> None:
    checked, unchecked = processes.run(reads_of_one_process, True), processes.run(reads_of_one_process, False)
    assert [one - other for one, other in zip(checked, unchecked, strict=True)] == [1, 1]


def overflowing_sum_on_one_process() -> bool:
    from classgap.distributed import rank

    logits = torch.full((4, 3), 3e38) if rank() == 1 else LOGITS
    return bool(CrossEntropyLoss(3)(logits, TARGETS).isfinite())


def test_a_closer_look_on_one_process_accepts_on_all(processes: Processes) -> None:
    assert processes.run(overflowing_sum_on_one_process) == [True, True]
