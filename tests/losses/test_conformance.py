"""Every loss, in every form, keeps every promise of the conformance suite."""

from collections.abc import Iterator
from functools import partial

import pytest
import torch
from _pytest.mark import ParameterSet
from feature_cases import FEATURE_CASES
from logit_cases import LOGIT_CASES
from slow_references import SlowDiscriminative, SlowELM, SlowMR2, SlowRelease

from classgap.losses import ELMLoss, LargeMarginDiscriminativeLoss, MR2Loss, MR2ReleaseLoss
from classgap.testing import CHECKS, LossCase, Processes, check_loss
from classgap.testing.two_processes import check_bad_input_on_one_process, check_processes_work_as_one


def mr2(num_classes: int = 5, **settings) -> LossCase:
    reference = SlowMR2(num_classes, **settings)
    return LossCase(partial(MR2Loss, num_classes, **settings), num_classes, reference=reference)


def release(source: str) -> LossCase:
    settings = {"source": source, "strength": 0.7}
    return LossCase(partial(MR2ReleaseLoss, 5, **settings), 5, reference=SlowRelease(5, **settings))


def elm(slack, alphas: list[float], strength: float = 0.3) -> LossCase:
    counts = [80, 40, 20, 10, 5]
    factory = partial(ELMLoss, counts, slack=slack, strength=strength)
    return LossCase(factory, 5, reference=SlowELM(counts, alphas, strength))


def discriminative(num_classes: int = 5, **settings) -> LossCase:
    factory = partial(LargeMarginDiscriminativeLoss, num_classes, 6, **settings)
    return LossCase(factory, num_classes, reference=SlowDiscriminative(**settings))


CASES = {
    "mr2": mr2(),
    "mr2-table3-a": mr2(logit="none", strength=0),
    "mr2-table3-b": mr2(logit="uniform", strength=0, margin=2.0),
    "mr2-table3-c": mr2(strength=0, margin=2.0),
    "mr2-table3-d": mr2(logit="none", strength=0.5, slack=0),
    "mr2-table3-e": mr2(logit="none", strength=0.5),
    "mr2-table3-f": mr2(strength=0.5, margin=2.0, spread="plain"),
    "mr2-cosine": mr2(strength=0.5, normalize=True, p=3.0),
    "mr2-norm-inf": mr2(strength=0.1, p=float("inf")),
    "mr2-norm-1": mr2(strength=0.1, p=1.0),
    "mr2-adjusted": mr2(strength=0.1, class_counts=[50, 30, 10, 5, 5]),
    "mr2-memory": mr2(strength=0.5, memory_size=20),
    "mr2-one-class": mr2(num_classes=1, strength=0.5),
    "mr2-two-classes": mr2(num_classes=2),
    "release-cifar": release("cifar"),
    "release-imagenet": release("imagenet"),
    "release-compiled": release("compiled"),
    "elm": elm("sqrt-count", [80**0.5, 40**0.5, 20**0.5, 10**0.5, 5**0.5]),
    "elm-numbers": elm([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0]),
    "elm-logit-only": elm(1.0, [1.0] * 5, strength=0),
    "lmdl": discriminative(),
    "lmdl-both": discriminative(centroids="both", momentum=0.5),
    "lmdl-none": discriminative(centroids="none"),
    "lmdl-compact-only": discriminative(separate=0.0, shrink=0.0),
    "lmdl-one-class": discriminative(num_classes=1),
    **LOGIT_CASES,
    **FEATURE_CASES,
}


FIRST_OF_CLASS = {type(case.build()): name for name, case in reversed(CASES.items())}.values()


def promises() -> Iterator[ParameterSet]:
    """Every check of every case; compiling is slow, so all but one case of each loss class compile in slow tests."""
    for name in CASES:
        for check in CHECKS:
            slow = check == "compile" and name not in FIRST_OF_CLASS
            yield pytest.param(name, check, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(("name", "check"), list(promises()))
def test_promise(name: str, check: str) -> None:
    CHECKS[check](CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_print_shows_the_settings(name: str) -> None:
    loss = CASES[name].build()
    assert f"{type(loss).__name__}(" in repr(loss)
    assert f"num_classes={loss.num_classes}, reduction='mean'" in repr(loss)


@pytest.mark.parametrize("name", CASES)
def test_two_processes_work_as_one(name: str, processes: Processes) -> None:
    check_processes_work_as_one(CASES[name], processes)
    check_bad_input_on_one_process(CASES[name], processes)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_inductor(name: str) -> None:
    CHECKS["compile"](CASES[name].with_(compile_backend="inductor"))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", CASES)
def test_promises_on_a_gpu(name: str) -> None:
    for check in CHECKS.values():
        check(CASES[name].with_(device="cuda"))


def test_check_loss_runs_everything(processes: Processes) -> None:
    check_loss(partial(MR2Loss, 4), num_classes=4, reference=SlowMR2(4), processes=processes)
