"""ResNet-18 for small images, with an optional linear feature layer (LMDL, Section 7 and Appendix F.1)."""

from __future__ import annotations

from torch import Tensor, nn

from classgap.models.cifar_resnet import conv3x3
from classgap.models.shapes import at_least_one, image_channels


class ResNet18(nn.Module):
    """ResNet-18 for 32×32 images: its stem is a 3×3 convolution without pooling.

    Weights use torch's default initialization, as in the published LMDL code.

    Args:
        num_classes: Number of outputs.
        channels: Input channels.
        features: Width of a linear layer before the head, without activation; 0 omits the layer, so that the head
            sees the 512 pooled channels.

    >>> import torch
    >>> net = ResNet18(10, features=30)
    >>> net(torch.zeros(2, 3, 32, 32)).shape, net.fc
    (torch.Size([2, 10]), Linear(in_features=30, out_features=10, bias=True))
    """

    def __init__(self, num_classes: int, *, channels: int = 3, features: int = 0) -> None:
        super().__init__()
        self.conv1 = conv3x3(channels, 64)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(ProjectionBlock(64, 64, 1), ProjectionBlock(64, 64, 1))
        self.layer2 = nn.Sequential(ProjectionBlock(64, 128, 2), ProjectionBlock(128, 128, 1))
        self.layer3 = nn.Sequential(ProjectionBlock(128, 256, 2), ProjectionBlock(256, 256, 1))
        self.layer4 = nn.Sequential(ProjectionBlock(256, 512, 2), ProjectionBlock(512, 512, 1))
        self.embed = nn.Linear(512, features) if features else nn.Identity()
        self.fc = nn.Linear(features or 512, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (B, K)."""
        x = self.bn1(self.conv1(images)).relu()
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.embed(x.mean(dim=(2, 3))))


class ProjectionBlock(nn.Module):
    """Residual block relu(x + conv(conv(x))) with a 1×1 convolution as shortcut between stages (option B)."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = conv3x3(inside, outside, stride)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = conv3x3(outside, outside)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut = nn.Sequential()
        if inside != outside:
            self.shortcut.append(nn.Conv2d(inside, outside, 1, stride=stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, (B, channels, H / stride, W / stride)."""
        out = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (out + self.shortcut(x)).relu()


def resnet18(*, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    """Create a ResNet-18 for small images."""
    return ResNet18(num_classes, channels=image_channels("resnet18", input_shape))


def lmdl_resnet18(*, num_classes: int, input_shape: tuple[int, ...], features: int = 30) -> nn.Module:
    """Create a ResNet-18 with a linear feature layer before the head.

    Args:
        num_classes: Number of outputs.
        input_shape: Shape of one input.
        features: Width of the feature layer.
    """
    at_least_one(features=features)
    return ResNet18(num_classes, channels=image_channels("lmdl-resnet18", input_shape), features=features)
