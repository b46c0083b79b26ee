"""Precision, memory layout and compilation of the network."""

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.eval_frame import OptimizedModule
from training_cases import config, new_run

from classgap.data.dataset import Dataset, Split
from classgap.engine import Run
from classgap.engine.defaults import resolve_config


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_the_network_uses_the_precision_and_weights_stay_fp32(precision: str, dtype: torch.dtype) -> None:
    run = new_run(precision=precision)
    seen = []
    run.tap.head.register_forward_hook(lambda head, inputs, output: seen.append(output.dtype))
    run.method.step(run, next(iter(run.batches.epoch(0))))
    assert seen == [dtype]
    assert {each.dtype for each in run.model.parameters()} == {torch.float32}
    assert run.scaler.is_enabled() == (precision == "fp16")
    run.scores(run.data.test)
    assert len(seen) > 1
    assert set(seen) == {dtype}


def color_run(*, channels_last: bool) -> Run:
    """Build a small convolutional network for three channels: with one, both layouts are equal."""
    inputs = torch.randint(256, (8, 3, 8, 8), dtype=torch.uint8)
    split = Split.from_arrays(inputs, torch.arange(8) % 2)
    data = Dataset("colors", split, split, ("a", "b"), "image", (3, 8, 8), (0.5,) * 3, (0.2,) * 3)
    wanted = config(model="resnet20", batch_size=8, channels_last=channels_last)
    run = Run(resolve_config(wanted, data), data, torch.device("cpu"))
    run.model.train()
    return run


@pytest.mark.parametrize("enabled", [True, False])
def test_channels_are_last_in_batches_weights_and_activations(enabled: bool) -> None:
    run = color_run(channels_last=enabled)
    seen: dict[str, list[Tensor]] = {"inputs": [], "outputs": [], "weights": []}

    def look(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        for name, tensor in zip(seen, (inputs[0], output, module.get_parameter("weight")), strict=True):
            if tensor.shape[-1] > 1:  # a single pixel has no layout
                seen[name].append(tensor)

    for module in run.model.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(look)
    run.method.step(run, next(iter(run.batches.epoch(0))))
    trained = len(seen["inputs"])
    run.scores(run.data.test)
    assert seen["inputs"][0].shape == seen["inputs"][trained].shape == (8, 3, 8, 8)  # the batches themselves
    for name, tensors in seen.items():
        layouts = {tensor.is_contiguous(memory_format=torch.channels_last) for tensor in tensors}
        assert layouts == {enabled}, name


@pytest.mark.parametrize("enabled", [True, False])
def test_compile_wraps_the_network(enabled: bool) -> None:
    run = new_run(compile=enabled)
    assert isinstance(run.network, OptimizedModule) == enabled
    assert getattr(run.network, "_orig_mod", run.network) is run.model
