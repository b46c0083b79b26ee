"""Pre-activation ResNets and Wide ResNets for 32×32 images.

He et al., "Identity Mappings in Deep Residual Networks" (2016); Zagoruyko and Komodakis, "Wide Residual Networks"
(2016). A Wide ResNet is the same network with more channels, and a projection in its first stage too: its authors count
6n + 4 layers, He et al. 6n + 2.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from classgap.models.cifar_resnet import conv3x3, he_init
from classgap.models.shapes import image_channels


class PreActResNet(nn.Module):
    """A 3×3 convolution, three stages of n blocks, batch norm, ReLU, global average pooling and a linear layer.

    Between stages the shortcut is a 1×1 convolution of the activated input, as in both papers and the published MR²
    code. Elsewhere it is the identity, as in the papers; the MR² code activates its input. Weights use He
    initialization (He et al. 2015).

    Args:
        blocks: Blocks per stage n.
        num_classes: Number of outputs.
        channels: Input channels.
        widen: Widening factor k; the stages have 16k, 32k and 64k channels, the first convolution has 16.
        dropout: Dropout between the convolutions of a block; the published MR² code uses 0.3 for WRN-28-10.

    >>> import torch
    >>> net = PreActResNet(3, num_classes=10)
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, blocks: int, num_classes: int, *, channels: int = 3, widen: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        widths = [16, 16 * widen, 32 * widen, 64 * widen]
        self.conv1 = conv3x3(channels, 16)
        self.layer1 = _stage(blocks, widths[0], widths[1], 1, dropout)
        self.layer2 = _stage(blocks, widths[1], widths[2], 2, dropout)
        self.layer3 = _stage(blocks, widths[2], widths[3], 2, dropout)
        self.bn = nn.BatchNorm2d(widths[3])
        self.fc = nn.Linear(widths[3], num_classes)
        self.apply(he_init)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (B, K)."""
        x = self.layer3(self.layer2(self.layer1(self.conv1(images))))
        return self.fc(self.bn(x).relu().mean(dim=(2, 3)))


class PreActBlock(nn.Module):
    """Pre-activation block x + conv(relu(bn(conv(relu(bn(x))))))."""

    def __init__(self, inside: int, outside: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inside)
        self.conv1 = conv3x3(inside, outside, stride)
        self.bn2 = nn.BatchNorm2d(outside)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = conv3x3(outside, outside)
        self.shortcut = nn.Conv2d(inside, outside, 1, stride=stride, bias=False) if inside != outside else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, (B, channels, H / stride, W / stride)."""
        active = self.bn1(x).relu()
        out = self.conv2(self.dropout(self.bn2(self.conv1(active)).relu()))
        return out + (x if self.shortcut is None else self.shortcut(active))


def preact_resnet(depth: int) -> Callable[..., nn.Module]:
    """Return a factory of PreAct ResNets of a depth 6n + 2."""

    def make(*, num_classes: int, input_shape: tuple[int, ...], dropout: float = 0.0) -> nn.Module:
        """Create a PreAct ResNet.

        Args:
            num_classes: Number of outputs.
            input_shape: Shape of one input.
            dropout: Dropout rate between the two convolutions of a block.
        """
        channels = image_channels(f"preact-resnet{depth}", input_shape)
        return PreActResNet((depth - 2) // 6, num_classes, channels=channels, dropout=_checked(dropout))

    return make


def wide_resnet(depth: int, widen: int) -> Callable[..., nn.Module]:
    """Return a factory of Wide ResNets of a depth 6n + 4."""

    def make(*, num_classes: int, input_shape: tuple[int, ...], dropout: float = 0.0) -> nn.Module:
        """Create a Wide ResNet.

        Args:
            num_classes: Number of outputs.
            input_shape: Shape of one input.
            dropout: Dropout rate between the two convolutions of a block.
        """
        channels = image_channels(f"wrn-{depth}-{widen}", input_shape)
        return PreActResNet((depth - 4) // 6, num_classes, channels=channels, widen=widen, dropout=_checked(dropout))

    return make


def _stage(blocks: int, inside: int, outside: int, stride: int, dropout: float) -> nn.Sequential:
    first = PreActBlock(inside, outside, stride, dropout)
    return nn.Sequential(first, *(PreActBlock(outside, outside, 1, dropout) for _ in range(blocks - 1)))


def _checked(dropout: float) -> float:
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {dropout}.")
    return dropout
