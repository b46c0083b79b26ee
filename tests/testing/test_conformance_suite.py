"""The conformance suite fails losses that break a promise: one broken loss for each check."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError

from classgap.losses import ClassLoss, Part
from classgap.testing import CHECKS, Inputs, LossCase, Processes
from classgap.testing.two_processes import check_bad_input_on_one_process, check_processes_work_as_one


class Sound(ClassLoss):
    """Mean true logit, with a running mean of the features that it subtracts."""

    def __init__(self) -> None:
        super().__init__(3)
        self.required_inputs = frozenset({"features"})
        self.register_buffer("level", torch.zeros(()))

    def parts(self, batch) -> dict[str, Part]:
        valid = (batch.labels_B >= 0).to(batch.logits_BK.dtype)
        total, count = batch.shards.sums((batch.features.detach().mean(dim=1) * valid).sum(), valid.sum())
        if self.updates and (batch.finite is None or torch.compiler.is_compiling()):
            self.remember(total / count.clamp(min=1), batch)
        return {"gap": Part(self.gap(batch, valid))}

    def remember(self, mean: Tensor, batch) -> None:
        new = (0.5 * self.level + 0.5 * mean).to(self.level.dtype).detach()
        self.level = new if batch.finite is None else torch.where(batch.finite, new, self.level)

    def gap(self, batch, valid: Tensor) -> Tensor:
        chosen = batch.logits_BK.gather(1, batch.labels_B.clamp(min=0)[:, None]).squeeze(1)
        return (chosen * batch.features.square().mean(dim=1) - self.level) * valid


def reference(batches: list[Inputs]) -> list[float]:
    level, values = 0.0, []
    for inputs in batches:
        level = 0.5 * level + 0.5 * inputs.features.mean().item()
        terms = zip(inputs.logits.tolist(), inputs.targets.tolist(), inputs.features.tolist(), strict=True)
        each = [z[y] * sum(x * x for x in f) / len(f) - level for z, y, f in terms]
        values.append(sum(each) / len(each))
    return values


class WrongValue(Sound):
    def gap(self, batch, valid):
        return super().gap(batch, valid) * 1.01


class WrongGradient(Sound):
    def gap(self, batch, valid):
        value = super().gap(batch, valid)
        return value.detach() + 0.5 * (value - value.detach())


class CountsIgnored(Sound):
    def gap(self, batch, valid):
        return super().gap(batch, torch.ones_like(valid))


class MindsOrder(Sound):
    def gap(self, batch, valid):
        return super().gap(batch, valid) * torch.arange(len(valid), device=valid.device)


class HalfInside(Sound):
    def gap(self, batch, valid):
        value = super().gap(batch, valid)
        return value.bfloat16().float() if value.dtype == torch.float32 else value


class DividesByDistance(Sound):
    def gap(self, batch, valid):
        return super().gap(batch, valid) / batch.features.norm(dim=1)


class UpdatesAlways(Sound):
    @property
    def updates(self) -> bool:
        return True


class Forgets(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("level", torch.zeros(()), persistent=False)


class LooseTensor(Sound):
    def gap(self, batch, valid):
        self.last = valid
        return super().gap(batch, valid)


class LiveTerms(Sound):
    def forward(self, *args, **kwargs):
        value = super().forward(*args, **kwargs)
        self.terms = {"gap": value}
        return value


class SharedTerms(Sound):
    def forward(self, *args, **kwargs):
        value = super().forward(*args, **kwargs)
        self.terms = {"gap": value.detach().mean() if value.ndim else value.detach()}
        return value


class BreaksTheGraph(Sound):
    def gap(self, batch, valid):
        torch._dynamo.graph_break()
        return super().gap(batch, valid)


class UpdatesBeforeLooking(Sound):
    def forward(self, logits, targets, **kwargs):
        self.level = self.level + 1
        return super().forward(logits, targets, **kwargs)


class ReadsTwice(Sound):
    def forward(self, logits, targets, **kwargs):
        if self.validate_args:
            assert logits.sum().item() < 1e30
        return super().forward(logits, targets, **kwargs)


class DropsSoftTargets(Sound):
    soft_targets = True

    def gap(self, batch, valid):
        return super().gap(batch, valid if batch.soft_BK is None else torch.zeros_like(valid))


class LocalMean(Sound):
    def remember(self, mean: Tensor, batch) -> None:
        super().remember(batch.features.detach().mean() if batch.features.numel() else mean, batch)


class WithParameter(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def gap(self, batch, valid):
        return super().gap(batch, valid) * self.scale


class WrongParameterGradient(WithParameter):
    factor = 0.5

    def gap(self, batch, valid):
        value = super().gap(batch, valid)
        return value + (self.factor - 1) * Sound.gap(self, batch, valid).detach() * (self.scale - self.scale.detach())


class ParameterOnEveryProcess(WrongParameterGradient):
    def gap(self, batch, valid):
        self.factor = len(batch.shards.sizes)
        return super().gap(batch, valid)


BROKEN = {
    "value": WrongValue,
    "gradient": WrongGradient,
    "reductions": CountsIgnored,
    "permutation": MindsOrder,
    "precision": HalfInside,
    "degenerate_batches": DividesByDistance,
    "evaluation": UpdatesAlways,
    "state_round_trip": Forgets,
    "ownership": LooseTensor,
    "terms": LiveTerms,
    "terms_are_copies": SharedTerms,
    "compile": BreaksTheGraph,
    "invalid_inputs": UpdatesBeforeLooking,
    "validate_args": ReadsTwice,
    "soft_targets": DropsSoftTargets,
}


def case(factory) -> LossCase:
    return LossCase(factory, 3, reference=reference)


def test_every_check_has_a_loss_that_breaks_it() -> None:
    assert BROKEN.keys() == CHECKS.keys()


@pytest.mark.parametrize("check", CHECKS)
def test_a_sound_loss_passes(check: str) -> None:
    CHECKS[check](case(Sound))


@pytest.mark.parametrize("check", BROKEN)
def test_a_failing_check_is_caught(check: str) -> None:
    errors = (AssertionError, torch._dynamo.exc.Unsupported, GradcheckError)
    with pytest.raises(errors):
        CHECKS[check](case(BROKEN[check]))


@pytest.mark.parametrize("check", ["value", "gradient", "precision", "state_round_trip", "compile"])
def test_a_sound_loss_with_a_parameter_passes(check: str) -> None:
    CHECKS[check](case(WithParameter))


def test_a_wrong_gradient_of_a_parameter_is_caught(processes: Processes) -> None:
    with pytest.raises(GradcheckError):
        CHECKS["gradient"](case(WrongParameterGradient))
    CHECKS["gradient"](case(ParameterOnEveryProcess))  # right as long as there is one process
    check_processes_work_as_one(case(WithParameter), processes)
    with pytest.raises(AssertionError, match=r"averaged gradient of loss\.scale"):
        check_processes_work_as_one(case(ParameterOnEveryProcess), processes)


def test_processes_that_do_not_work_as_one_are_caught(processes: Processes) -> None:
    check_processes_work_as_one(case(Sound), processes)
    with pytest.raises(AssertionError, match="state level"):
        check_processes_work_as_one(case(LocalMean), processes)


def test_a_loss_that_changes_before_it_rejects_is_caught(processes: Processes) -> None:
    check_bad_input_on_one_process(case(Sound), processes)
    with pytest.raises(AssertionError, match="changed the state"):
        check_bad_input_on_one_process(case(UpdatesBeforeLooking), processes)
