"""Sharpness-aware steps, SAM (Foret et al. 2021) and ASAM (Kwon et al. 2021), around any method."""

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
    from classgap.data.batches import Batch
    from classgap.engine.run import Run


class SharpnessAware(MethodWrapper):
    """Steps with the gradient from where the loss is highest nearby, so that training ends in flat regions.

        w ← w - η ∇L(w + e),      SAM:   e = ρ g / ‖g‖                                    Eq. (2), (3), Algorithm 1
                                  ASAM:  e = ρ T² g / ‖T g‖,   T = |w| + smallest for weights, 1 for others

    Foret et al., "Sharpness-Aware Minimization for Efficiently Improving Generalization", ICLR 2021, arXiv 2010.01412;
    Kwon et al., "ASAM: Adaptive Sharpness-Aware Minimization", ICML 2021, arXiv 2102.11600. g is the gradient of the
    whole batch, of all its parts and all processes, and the norm is over all parameters of the model. The authors of
    SAM let each device climb on its own; here all agree, and the result does not depend on their number.

    The second pass only asks for a gradient. What the loss and batch norm remember comes from the first pass, and so do
    the metrics; random masks are the same in both. Weight decay is the optimiser's, and not a part of the climb, as in
    the PyTorch versions; the authors' has it in both gradients. Parameters that a loss owns do not climb. With ρ = 0 it
    is the method inside.

    Args:
        inner: whose objective is minimised; it must use the plain step.
        rho: ρ, how far to climb.
        adaptive: ASAM in place of SAM.
        smallest: of T, for weights that are 0. The published class uses 0.01, its command line 0.

    >>> from classgap.losses import CrossEntropyLoss
    >>> method = SharpnessAware(Method(CrossEntropyLoss(num_classes=10)), rho=0.1)
    >>> method.loss
    CrossEntropyLoss(num_classes=10, reduction='mean', label_smoothing=0.0)
    """

    def __init__(self, inner: Method, *, rho: float = 0.05, adaptive: bool = False, smallest: float = 0.01) -> None:
        if type(inner).step is not Method.step:
            raise ValueError(f"SharpnessAware changes the step, and so does {type(inner).__name__}: use one of them.")
        super().__init__(inner)
        self.rho = check_float("rho", rho, ge=0)
        self.adaptive = check_bool("adaptive", adaptive)
        self.smallest = check_float("smallest", smallest, ge=0)

    def step(self, run: Run, batch: Batch) -> None:
        """Climb, look there, come back, step."""
        with torch.random.fork_rng([run.device] if run.device.type == "cuda" else []):
            run.backward(self.inner.objective, batch)
        climb = self._climb(run)
        # If the scaled gradients of fp16 overflow there is no direction; the scaler sees them and skips the step.
        if climb is not None:
            with _moved(climb), _unchanged_buffers(run.model), self.loss.frozen():
                run.backward(self.inner.objective, batch, measured=False)
        run.update()

    @torch.no_grad()
    def _climb(self, run: Run) -> dict[nn.Parameter, Tensor] | None:
        """e of each parameter, ``None`` if a gradient is not finite. A factor that all gradients share falls out."""
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
        """T, which is 1 in SAM and for what is not called a weight."""
        return parameter.abs() + self.smallest if self.adaptive and "weight" in name else 1.0


@contextmanager
def _moved(climb: dict[nn.Parameter, Tensor]) -> Iterator[None]:
    """Parameters moved inside, and exactly where they were afterwards: w + e - e need not be w."""
    before = {parameter: parameter.detach().clone() for parameter in climb}
    with torch.no_grad():
        for parameter, step in climb.items():
            parameter.add_(step)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in before.items():
                parameter.copy_(value)


@contextmanager
def _unchanged_buffers(model: nn.Module) -> Iterator[None]:
    """Batch norm's statistics and the like afterwards as they were."""
    before = {buffer: buffer.clone() for buffer in model.buffers()}
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before.items():
                buffer.copy_(value)


def sam(inner: Method, *, rho: float = 0.05) -> Method:
    """SAM around a method.

    >>> from classgap.losses import CrossEntropyLoss
    >>> sam(Method(CrossEntropyLoss(num_classes=10))).rho
    0.05
    """
    return SharpnessAware(inner, rho=rho)


def asam(inner: Method, *, rho: float = 0.5, smallest: float = 0.01) -> Method:
    """ASAM around a method.

    >>> from classgap.losses import CrossEntropyLoss
    >>> asam(Method(CrossEntropyLoss(num_classes=10))).adaptive
    True
    """
    return SharpnessAware(inner, rho=rho, adaptive=True, smallest=smallest)
