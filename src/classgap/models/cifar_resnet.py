"""ResNets for 32×32 images: He et al., "Deep Residual Learning for Image Recognition" (2016), Section 4.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import torch.nn.functional as F
from torch import Tensor, nn

from classgap.models.shapes import at_least_one, image_channels

Shortcut = Literal["pad", "projection"]


class CifarResNet(nn.Module):
    """ResNet of 6n + 2 layers: a 3×3 convolution, three stages of n two-layer blocks, average pooling, a linear layer.

    Within a stage, shortcuts are the identity. Between stages, "pad" subsamples the image and adds zero channels
    (option A, the paper's choice for CIFAR), and "projection" is a 1×1 convolution with batch norm (option B, the
    network file of the published MR² code). Weights use He initialization (He et al. 2015), biases are zero.

    Args:
        blocks: Blocks per stage n.
        num_classes: Number of outputs.
        channels: Input channels.
        width: Channels of the first stage.
        shortcut: Shortcut between stages, "pad" or "projection".

    >>> import torch
    >>> net = CifarResNet(3, num_classes=10)
    >>> sum(parameter.numel() for parameter in net.parameters()), net(torch.zeros(2, 3, 32, 32)).shape
    (269722, torch.Size([2, 10]))
    """

    def __init__(
        self, blocks: int, num_classes: int, *, channels: int = 3, width: int = 16, shortcut: Shortcut = "pad"
    ) -> None:
        super().__init__()
        if shortcut not in get_args(Shortcut):
            raise ValueError(f"shortcut must be {' or '.join(get_args(Shortcut))}, got {shortcut!r}.")
        self.conv1 = conv3x3(channels, width)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = _stage(blocks, width, width, 1, shortcut)
        self.layer2 = _stage(blocks, width, 2 * width, 2, shortcut)
        self.layer3 = _stage(blocks, 2 * width, 4 * width, 2, shortcut)
        self.fc = nn.Linear(4 * width, num_classes)
        self.apply(he_init)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (B, K)."""
        x = self.bn1(self.conv1(images)).relu()
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean(dim=(2, 3)))


class BasicBlock(nn.Module):
    """Residual block relu(s(x) + conv(conv(x))) with the identity, padding or a projection as shortcut s."""

    def __init__(self, inside: int, outside: int, stride: int, shortcut: Shortcut = "pad") -> None:
        super().__init__()
        self.conv1 = conv3x3(inside, outside, stride)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = conv3x3(outside, outside)
        self.bn2 = nn.BatchNorm2d(outside)
        self.stride, self.missing = stride, outside - inside
        self.shortcut: nn.Module | None = None
        if shortcut == "projection" and self.missing:
            projection = nn.Conv2d(inside, outside, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, (B, channels, H / stride, W / stride)."""
        out = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        if self.shortcut is not None:
            x = self.shortcut(x)
        elif self.missing:
            before = self.missing // 2
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.missing - before))
        return (out + x).relu()


def conv3x3(inside: int, outside: int, stride: int = 1) -> nn.Conv2d:
    """Create a padded 3×3 convolution without bias, for use before batch norm."""
    return nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False)


def he_init(module: nn.Module) -> None:
    """Initialize weights with variance 2 / fan-in and biases with zero."""
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        nn.init.kaiming_normal_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def resnet(depth: int) -> Callable[..., nn.Module]:
    """Return a factory of ResNets of a depth 6n + 2."""

    def make(
        *, num_classes: int, input_shape: tuple[int, ...], width: int = 16, shortcut: Shortcut = "pad"
    ) -> nn.Module:
        """Create a ResNet.

        Args:
            num_classes: Number of outputs.
            input_shape: Shape of one input.
            width: Number of channels of the first stage.
            shortcut: Shortcut between stages: "pad" with zero channels (option A of the paper), or "projection" by a
                1×1 convolution (option B).
        """
        channels = image_channels(f"resnet{depth}", input_shape)
        at_least_one(width=width)
        return CifarResNet((depth - 2) // 6, num_classes, channels=channels, width=width, shortcut=shortcut)

    return make


def _stage(blocks: int, inside: int, outside: int, stride: int, shortcut: Shortcut) -> nn.Sequential:
    first = BasicBlock(inside, outside, stride, shortcut)
    return nn.Sequential(first, *(BasicBlock(outside, outside, 1) for _ in range(blocks - 1)))
