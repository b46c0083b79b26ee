"""Checks that every loss must pass, all run by :func:`check_loss`."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from classgap.losses import ClassLoss, Part
from classgap.testing.comparisons import assert_same_state, assert_unchanged, finite_with_gradients
from classgap.testing.host_reads import count_host_reads
from classgap.testing.loss_case import Inputs, LossCase, Reference, seed_torch
from classgap.testing.processes import Processes
from classgap.testing.two_processes import check_bad_input_on_one_process, check_processes_work_as_one

close = torch.testing.assert_close


def check_value(case: LossCase) -> None:
    """Three successive training batches give the values of the slow reference."""
    if case.reference is None:
        return
    loss = case.build()
    batches = [case.inputs(seed, dtype=torch.float64) for seed in range(3)]
    values = [case.call(loss, inputs).item() for inputs in batches]
    close(torch.tensor(values), torch.tensor(case.reference(batches)), rtol=1e-5, atol=1e-6)


def check_gradient(case: LossCase) -> None:
    """Analytic and numeric gradients of every part agree in float64, and the loss is their weighted sum."""
    loss = case.build(warm=2)
    inputs = case.inputs(0, size=9, dtype=torch.float64)
    own = {name: leaf.detach().double().requires_grad_() for name, leaf in loss.named_parameters(prefix="loss")}
    leaves = inputs.leaves() | own

    def parts(*tensors: Tensor) -> dict[str, Part]:
        varied = dict(zip(leaves, tensors, strict=True))
        head = deepcopy(inputs.head)
        _replace_parameters(head, "head", varied)
        _replace_parameters(loss, "loss", varied)
        given = {"features": varied["features"], "head": head, "index": inputs.index, "sample_weight": None}
        seed_torch()
        with loss.frozen():
            return loss.parts(loss.prepare_inputs(varied["logits"], inputs.targets, given))

    def terms(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(part.terms_B for part in parts(*tensors).values())

    assert torch.autograd.gradcheck(terms, tuple(leaves.values()), atol=1e-6)
    _replace_parameters(loss, "loss", leaves)
    with loss.frozen():
        value = case.call(loss, inputs)
    whole = torch.stack([part.terms_B.mean() * part.weight for part in parts(*leaves.values()).values()]).sum()
    ours, theirs = (torch.autograd.grad(each, list(leaves.values()), materialize_grads=True) for each in (value, whole))
    close(ours, theirs)


def check_reductions(case: LossCase) -> None:
    """Mean, sum and none agree; weights scale samples; ignoring samples equals removing them."""
    inputs = case.inputs(0, dtype=torch.float64)
    mean, total, each = (_reduced(case, name, inputs) for name in ("mean", "sum", "none"))
    assert each.shape == inputs.targets.shape
    close(each.sum(), total)
    close(each.mean(), mean)
    weight = torch.linspace(0, 2, len(each), dtype=torch.float64, device=case.device)
    close(_reduced(case, "none", inputs, sample_weight=weight), each * weight)
    close(_reduced(case, "mean", inputs, sample_weight=weight), (each * weight).mean())

    keep = torch.arange(len(each), device=case.device) % 3 != 0
    targets = torch.where(keep, inputs.targets, -100)
    kept = Inputs(inputs.logits[keep], inputs.targets[keep], inputs.features[keep], inputs.head, inputs.index[keep])
    close(_reduced(case, "mean", inputs, targets=targets), _reduced(case, "mean", kept))
    ignored = _reduced(case, "none", inputs, targets=targets)
    assert not ignored[~keep].any()


def check_permutation(case: LossCase) -> None:
    """The order of the samples does not matter."""
    loss, twin = case.build(warm=1), case.build(warm=1)
    inputs = case.inputs(0, dtype=torch.float64)
    order = torch.randperm(len(inputs.targets), generator=torch.Generator().manual_seed(0)).to(case.device)
    shuffled = Inputs(
        inputs.logits[order], inputs.targets[order], inputs.features[order], inputs.head, inputs.index[order]
    )
    value, expected = case.call(twin, shuffled), case.call(loss, inputs)
    close(value, expected)
    leaves = (inputs.logits, inputs.features)
    ours, theirs = (torch.autograd.grad(each, leaves, materialize_grads=True) for each in (value, expected))
    close(ours, theirs)


def check_precision(case: LossCase) -> None:
    """Half precision is promoted to float32; float64 is kept; autocast changes nothing."""
    for dtype in (torch.bfloat16, torch.float16):
        rounded = case.moved(case.inputs(0), dtype)
        value = finite_with_gradients(case, case.build(warm=1), rounded)
        assert value.dtype == torch.float32, f"{dtype} in gave {value.dtype} out"
        close(value, case.call(case.build(warm=1), case.moved(rounded, torch.float32)))
    for scale in (1e-6, 6e4):  # near the ends of the range of float16
        usual = case.inputs(0)
        with torch.no_grad():
            usual.features.mul_(scale / usual.features.abs().max())
        half = case.moved(usual, torch.float16)
        full = case.moved(half, torch.float32)
        gradients = []
        for inputs in (half, full):
            loss = case.build(warm=1)
            case.call(loss, inputs).backward()
            gradients.append(inputs.gradients(loss))
        for name in half.leaves():  # infinite only where float16 cannot hold the gradient, as a GradScaler expects
            close(gradients[0][name], gradients[1][name].half(), rtol=2e-3, atol=1e-6)
    for cast in (torch.nn.Module.half, torch.nn.Module.bfloat16):  # part of a model in half precision
        assert_same_state(cast(case.build(warm=1)), case.build(warm=1), exactly=True)
    inputs = case.inputs(0)
    with torch.autocast(case.device, dtype=torch.bfloat16):
        under_autocast = case.call(case.build(warm=1), inputs)
    close(under_autocast, case.call(case.build(warm=1), inputs))
    exact = case.call(case.build(warm=1), case.moved(inputs, torch.float64))
    assert exact.dtype == torch.float64
    close(under_autocast, exact.float(), rtol=1e-4, atol=1e-5)


def check_degenerate_batches(case: LossCase) -> None:
    """Value and gradients are finite for extreme logits, equal or zero features, and one sample, one class or none."""
    usual = case.inputs(0)
    signs = torch.where(torch.arange(usual.logits.numel()) % 2 == 0, 1e4, -1e4).view_as(usual.logits)
    same = usual.features[:1].expand_as(usual.features)
    one_class = torch.zeros_like(usual.targets)
    singles = torch.arange(len(usual.targets), device=case.device) % case.num_classes
    for warm in (0, 2):
        for changes in (
            {"logits": signs.to(case.device)},
            {"features": same},
            {"features": torch.zeros_like(same)},
            {"targets": one_class},
            {"targets": one_class, "features": same},
            {"targets": singles},
            {"targets": torch.full_like(one_class, -100)},
        ):
            finite_with_gradients(case, case.build(warm=warm), usual, **changes)
        finite_with_gradients(case, case.build(warm=warm), case.inputs(1, size=1))
        finite_with_gradients(case, case.build(warm=warm), case.inputs(1, size=2).part(slice(0, 0)))


def check_evaluation(case: LossCase) -> None:
    """``eval()`` and ``frozen()`` return a value and do not change the state."""
    for warm in (0, 2):
        loss = case.build(warm=warm)
        with assert_unchanged(loss), loss.frozen():
            assert case.call(loss, case.inputs(0)).isfinite()
        with assert_unchanged(loss):
            loss.eval()
            first, second = case.call(loss, case.inputs(0)), case.call(loss, case.inputs(0))
        close(first, second, rtol=0, atol=0)


def check_state_round_trip(case: LossCase) -> None:
    """A loss restored from ``state_dict`` during training continues exactly like the original."""
    loss = case.build(warm=3)
    stored = {name: tensor.clone() for name, tensor in loss.state_dict().items()}
    twin = case.build()
    twin.load_state_dict(stored)
    for seed in range(2):
        inputs = case.inputs(seed)
        close(case.call(twin, inputs), case.call(loss, inputs), rtol=0, atol=0)
    assert_same_state(twin, loss, exactly=True)


def check_ownership(case: LossCase) -> None:
    """Every stored tensor is a buffer or a parameter, and the head of a call is not registered."""
    loss = case.build()
    before = {name for name, _ in loss.named_parameters()}
    inputs = case.inputs(0)
    case.call(loss, inputs).backward()
    assert {name for name, _ in loss.named_parameters()} == before, "the loss registered parameters of its inputs"
    for path, module in loss.named_modules():
        loose = [name for name, value in vars(module).items() if isinstance(value, Tensor)]
        assert not loose, f"{path or type(loss).__name__} stores {loose} as plain attributes: register them as buffers"


def check_terms(case: LossCase) -> None:
    """``terms`` contains the named parts of the last call as detached scalars."""
    loss = case.build()
    case.call(loss, case.inputs(0))
    assert loss.terms, "no terms after a call"
    for name, term in loss.terms.items():
        assert term.shape == () and not term.requires_grad, f"term {name!r} must be a detached scalar"


def check_terms_are_copies(case: LossCase) -> None:
    """Changing the value in place, such as ``value /= 4``, does not change ``terms``."""
    for reduction in ("mean", "sum", "none"):
        loss = case.build()
        loss.reduction = reduction
        value = case.call(loss, case.inputs(0))
        before = {name: term.item() for name, term in loss.terms.items()}
        value += 1
        for name, term in loss.terms.items():
            assert term.item() == before[name], f"term {name!r} changed with the value: store a copy"


def check_compile(case: LossCase) -> None:
    """One graph with the values, gradients and state of eager mode; a non-finite batch does not change the state."""
    torch._dynamo.reset()
    loss, plain = case.build(), case.build()
    compiled = torch.compile(loss, fullgraph=True, backend=case.compile_backend)
    for seed in range(3):
        ours, theirs = case.inputs(seed), case.inputs(seed)
        value, expected = case.call(compiled, ours), case.call(plain, theirs)
        close(value, expected, rtol=1e-5, atol=1e-5)
        value.backward()
        expected.backward()
        expected_gradients = theirs.gradients(plain)
        for name, gradient in ours.gradients(loss).items():
            close(gradient, expected_gradients[name], rtol=1e-4, atol=1e-5)
        assert_same_state(loss, plain)
    broken = case.inputs(5)
    with assert_unchanged(loss):
        case.call(compiled, broken, logits=torch.full_like(broken.logits, math.nan, requires_grad=True))
    if "features" in loss.required_inputs:
        with assert_unchanged(loss):
            case.call(compiled, broken, features=torch.full_like(broken.features, math.inf, requires_grad=True))


def check_invalid_inputs(case: LossCase) -> None:
    """Invalid inputs raise a ``ValueError`` that names the argument, and change nothing."""
    loss = case.build(warm=1)
    inputs = case.inputs(0)
    wrong: list[tuple[str, Any]] = [
        ("logits", inputs.logits[:, :-1] if case.num_classes > 1 else inputs.logits.repeat(1, 2)),
        ("logits", inputs.logits[:-1]),
        ("logits", inputs.logits.long()),
        ("logits", torch.full_like(inputs.logits, math.nan)),
        ("targets", inputs.targets[:-1]),
        ("targets", torch.full_like(inputs.targets, case.num_classes)),
        ("targets", torch.full_like(inputs.targets, -1)),
        ("targets", inputs.targets.tolist()),
        ("sample_weight", torch.ones(3)),
        ("sample_weight", -torch.ones(len(inputs.targets))),
    ]
    if "features" in loss.required_inputs:
        wrong += [
            ("features", None),
            ("features", inputs.features[:-1]),
            ("features", inputs.features[0]),
            ("features", torch.full_like(inputs.features, math.inf)),
            ("features", torch.full_like(inputs.features, 1e30)),
        ]
    if "head" in loss.required_inputs:
        wrong += [("head", None), ("head", case.head(case.feature_dim, case.num_classes + 1))]
        wrong += [("head", torch.nn.Bilinear(1, 1, case.num_classes))]
        if "features" in loss.required_inputs:
            wrong += [("head", case.head(case.feature_dim + 1, case.num_classes))]
    if "index" in loss.required_inputs:
        wrong += [("index", None), ("index", inputs.index[:-1])]
    for name, value in wrong:
        with assert_unchanged(loss):
            _expect_error(case, loss, inputs, name, value)


def check_validate_args(case: LossCase) -> None:
    """Checking values reads from the device at most once per call, and skipping it changes no result."""
    inputs = case.inputs(0)
    weight = torch.ones(len(inputs.targets), device=case.device)
    some_ignored = torch.where(torch.arange(len(inputs.targets), device=case.device) % 3 == 0, -100, inputs.targets)
    for training in (True, False):
        for changes in ({}, {"targets": some_ignored}, {"sample_weight": weight}):
            checked, unchecked = case.build(warm=1).train(training), case.build(warm=1).train(training)
            unchecked.validate_args = False
            with count_host_reads() as reads:
                value = case.call(checked, inputs, **changes)
            with count_host_reads() as fewer_reads:
                other = case.call(unchecked, inputs, **changes)
            added = reads.total() - fewer_reads.total()
            assert added <= 1, f"checking adds {added} reads from the device: {dict(reads - fewer_reads)}"
            close(other, value, rtol=1e-6, atol=1e-7)
            assert_same_state(unchecked, checked)


def check_soft_targets(case: LossCase) -> None:
    """One-hot soft targets equal class indices if soft targets are supported; otherwise they are rejected."""
    inputs = case.inputs(0)
    one_hot = torch.nn.functional.one_hot(inputs.targets, case.num_classes).to(inputs.logits.dtype)
    loss = case.build(warm=1)
    if loss.soft_targets:
        close(case.call(loss, inputs, targets=one_hot), case.call(case.build(warm=1), inputs))
        _expect_error(case, loss, inputs, "targets", one_hot * 2)
        _expect_error(case, loss, inputs, "targets", one_hot[:-1])
    else:
        _expect_error(case, loss, inputs, "targets", one_hot)


def _expect_error(case: LossCase, loss: ClassLoss, inputs: Inputs, name: str, value: Any) -> None:
    # If the batch sizes differ, the message may name either argument.
    names = {name, "targets"} if name == "logits" else {name}
    try:
        case.call(loss, inputs, **{name: value})
    except ValueError as error:
        assert any(each in str(error) for each in names), f"the message does not name {name}: {error}"
    else:
        raise AssertionError(f"an invalid {name} was accepted: {value!r}")


def _reduced(case: LossCase, reduction: str, inputs: Inputs, **changes: Any) -> Tensor:
    loss = case.build(warm=1)
    loss.reduction = reduction
    return case.call(loss, inputs, **changes).detach()


def _replace_parameters(module: torch.nn.Module, prefix: str, tensors: dict[str, Tensor]) -> None:
    """Replace the parameters of a module with the tensors that gradcheck varies."""
    for path, owner in module.named_modules(prefix=prefix):
        for name in owner._parameters:
            owner._parameters[name] = tensors.get(f"{path}.{name}")


CHECKS: dict[str, Callable[[LossCase], None]] = {
    check.__name__.removeprefix("check_"): check
    for check in (
        check_value,
        check_gradient,
        check_reductions,
        check_permutation,
        check_precision,
        check_degenerate_batches,
        check_evaluation,
        check_state_round_trip,
        check_ownership,
        check_terms,
        check_terms_are_copies,
        check_compile,
        check_invalid_inputs,
        check_validate_args,
        check_soft_targets,
    )
}


def check_loss(
    factory: Callable[[], ClassLoss],
    *,
    num_classes: int,
    feature_dim: int = 6,
    reference: Reference | None = None,
    processes: Processes | None = None,
    compile_backend: str = "aot_eager",
    device: str = "cpu",
    head: Callable[[int, int], torch.nn.Module] = torch.nn.Linear,
) -> None:
    """Run the conformance suite on a loss; raise ``AssertionError`` at the first failed check.

    The arguments are those of :class:`LossCase`. ``processes`` reuses running workers; by default two are started for
    the distributed checks.

    >>> from functools import partial
    >>> from classgap.losses import ELMLoss
    >>> check_loss(partial(ELMLoss, [9, 5, 1]), num_classes=3)  # doctest: +SKIP
    """
    case = LossCase(factory, num_classes, feature_dim, reference, compile_backend, device, head)
    for check in CHECKS.values():
        check(case)
    workers = processes or Processes(2)
    try:
        check_processes_work_as_one(case, workers)
        check_bad_input_on_one_process(case, workers)
    finally:
        if processes is None:
            workers.close()
