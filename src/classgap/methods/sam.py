"""Sharpness-aware minimization, SAM (Foret et al. 2021) and ASAM (Kwon et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from classgap.losses.arguments import check_bool, check_float
from classgap.methods.method import Method
from classgap.methods.wrapper import MethodWrapper

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.methods.protocol import TrainingRun


class SharpnessAware(MethodWrapper):
    """Update with the gradient at the worst nearby point, which favors flat minima.

        w ← w - η ∇L(w + e),      SAM:   e = ρ g / ‖g‖                                    Eq. (2), (3), Algorithm 1
                                  ASAM:  e = ρ T² g / ‖T g‖,   T = |w| + smallest for weights, 1 otherwise

    Foret et al., "Sharpness-Aware Minimization for Efficiently Improving Generalization", ICLR 2021, arXiv 2010.01412;
    Kwon et al., "ASAM: Adaptive Sharpness-Aware Minimization", ICML 2021, arXiv 2102.11600. g is the gradient of the
    global batch, and its norm is over all parameters of the model. The authors of SAM perturb each device separately;
    here the perturbation is shared, so the result does not depend on the number of processes.

    State of the loss, batch norm statistics and metrics come from the first pass. Random masks are the same in both
    passes. Weight decay is applied by the optimizer and does not affect the perturbation, as in the PyTorch
    implementations; the authors' code includes it in both gradients. Parameters of the loss are not perturbed. ρ = 0
    recovers the wrapped method.

    Args:
        inner: Wrapped method, which must use the plain step.
        rho: Radius ρ of the neighborhood.
        adaptive: Use ASAM instead of SAM.
        smallest: Offset in T for weights close to 0. The published class uses 0.01, its command line 0.

    >>> from classgap.losses import CrossEntropyLoss
    >>> method = SharpnessAware(Method(CrossEntropyLoss(num_classes=10)), rho=0.1)
    >>> method.loss
    CrossEntropyLoss(num_classes=10, reduction='mean', label_smoothing=0.0)
    """

    def __init__(self, inner: Method, *, rho: float = 0.05, adaptive: bool = False, smallest: float = 0.01) -> None:
        if type(inner).step is not Method.step:
            raise ValueError(f"inner must use the plain step, but {type(inner).__name__} overrides step().")
        super().__init__(inner)
        self.rho = check_float("rho", rho, ge=0)
        self.adaptive = check_bool("adaptive", adaptive)
        self.smallest = check_float("smallest", smallest, ge=0)

    def step(self, run: TrainingRun, batch: Batch) -> None:
        """Compute the gradient at the perturbed weights and take a step."""
        with torch.random.fork_rng([run.device] if run.device.type == "cuda" else []):
            run.backward(self.inner.objective, batch)
        perturbation = self._perturbation(run)
        # With an overflow of scaled fp16 gradients there is no direction; the scaler then skips the step.
        if perturbation is not None:
            with _perturbed(perturbation), _preserved_buffers(run.model), self.loss.frozen():
                run.backward(self.inner.objective, batch, measured=False)
        run.update()

    @torch.no_grad()
    def _perturbation(self, run: TrainingRun) -> dict[nn.Parameter, Tensor] | None:
        """Return e by parameter, or ``None`` if a gradient is not finite. The loss scale cancels out."""
        trained = {parameter for group in run.optimizer.param_groups for parameter in group["params"]}
        named = [(name, each) for name, each in run.model.named_parameters() if each in trained]
        found = [(name, each, each.grad) for name, each in named if each.grad is not None]
        sizes = [self._size(name, each) for name, each, _ in found]
        stretched = [gradient * size for (_, _, gradient), size in zip(found, sizes, strict=True)]
        if not stretched:
            return {}
        norm = torch.stack([torch.linalg.vector_norm(each) for each in stretched]).norm()
        if not bool(norm.isfinite()):
            return None
        factor = self.rho / (norm + 1e-12)
        return {each: factor * size * part for (_, each, _), size, part in zip(found, sizes, stretched, strict=True)}

    def _size(self, name: str, parameter: nn.Parameter) -> Tensor | float:
        """Return T, which is 1 in SAM and for parameters not named "weight"."""
        return parameter.abs() + self.smallest if self.adaptive and "weight" in name else 1.0


@contextmanager
def _perturbed(perturbation: dict[nn.Parameter, Tensor]) -> Iterator[None]:
    """Perturb parameters inside the context. Restore copies, since w + e - e may differ from w."""
    before = {parameter: parameter.detach().clone() for parameter in perturbation}
    with torch.no_grad():
        for parameter, offset in perturbation.items():
            parameter.add_(offset)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in before.items():
                parameter.copy_(value)


@contextmanager
def _preserved_buffers(model: nn.Module) -> Iterator[None]:
    """Restore the buffers, such as batch norm statistics, on exit."""
    before = {buffer: buffer.clone() for buffer in model.buffers()}
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before.items():
                buffer.copy_(value)


def sam(inner: Method, *, rho: float = 0.05) -> Method:
    """Wrap a method with SAM.

    >>> from classgap.losses import CrossEntropyLoss
    >>> sam(Method(CrossEntropyLoss(num_classes=10))).rho
    0.05
    """
    return SharpnessAware(inner, rho=rho)


def asam(inner: Method, *, rho: float = 0.5, smallest: float = 0.01) -> Method:
    """Wrap a method with ASAM.

    >>> from classgap.losses import CrossEntropyLoss
    >>> asam(Method(CrossEntropyLoss(num_classes=10))).adaptive
    True
    """
    return SharpnessAware(inner, rho=rho, adaptive=True, smallest=smallest)
