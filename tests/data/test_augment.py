"""AutoAugment and RandAugment against a loop over images that applies torchvision's operations."""

import pytest
import torch
from scipy import stats
from test_operations import ORACLES, photographs
from torch import Tensor
from torchvision.transforms import v2

from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.augment import AUGMENTS, build_augment
from classgap.data.transforms.auto_augment import AutoAugment, parse_policy
from classgap.data.transforms.operations import OPERATIONS, magnitudes
from classgap.data.transforms.rand_augment import RandAugment


def by_torchvision(image: Tensor, name: str, level: int, levels: int, negative: bool) -> Tensor:
    amount = float(magnitudes(name, levels, *image.shape[-2:])[level])
    return ORACLES[name](image, -amount if negative and OPERATIONS[name].signed else amount)


def assert_nearly_equal(ours: Tensor, theirs: Tensor) -> None:
    differs = (ours != theirs).flatten(1).float().mean(dim=1)
    # Rounding decides a few pixels of a shear, and an operation after it sees another image.
    assert float((differs > 0).float().mean()) < 0.15
    assert float(differs.median()) == 0


@pytest.mark.parametrize("policy", ["cifar10", "imagenet"])
def test_policies_match_the_published_ones(policy: str) -> None:
    theirs = v2.AutoAugment(v2.AutoAugmentPolicy(policy))._policies
    wanted = [[(name.lower(), chance, level or 0) for name, chance, level in pair] for pair in theirs]
    assert [[(name.replace("-", ""), c, level) for name, c, level in pair] for pair in parse_policy(policy)] == wanted


@pytest.mark.parametrize("policy", ["cifar10", "imagenet"])
def test_auto_augment_matches_a_loop_over_images(policy: str) -> None:
    images = photographs().repeat(20, 1, 1, 1)
    keys = Keys(1, 2, torch.arange(len(images)))
    ours = AutoAugment(policy)(images, keys)
    draw = keys.uniform(5, "auto-augment").tolist()
    theirs = []
    for image, (choice, *rest) in zip(images, draw, strict=True):
        pair = parse_policy(policy)[int(choice * 25)]
        for i, (name, chance, level) in enumerate(pair):
            if rest[i] < chance:
                image = by_torchvision(image, name, level, 10, rest[2 + i] < 0.5)
        theirs.append(image)
    assert_nearly_equal(ours, torch.stack(theirs))


def test_rand_augment_matches_a_loop_over_images() -> None:
    images = photographs().repeat(20, 1, 1, 1)
    keys = Keys(1, 2, torch.arange(len(images)))
    ours = RandAugment(n=2, m=9)(images, keys)
    names = [name for name in OPERATIONS if name != "invert"]
    theirs = []
    for image, draw in zip(images, keys.uniform(4, "rand-augment").tolist(), strict=True):
        for choice, sign in (draw[:2], draw[2:]):
            image = by_torchvision(image, names[int(choice * 14)], 9, 31, sign < 0.5)
        theirs.append(image)
    assert_nearly_equal(ours, torch.stack(theirs))


@pytest.mark.parametrize("make", [AutoAugment, RandAugment])
def test_changes_are_distributed_as_in_torchvision(make) -> None:
    images = photographs()[4:].repeat(100, 1, 1, 1)
    theirs_of = {AutoAugment: v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10), RandAugment: v2.RandAugment()}[make]
    ours = make()(images, Keys(0, 0, torch.arange(len(images))))
    theirs = torch.stack([theirs_of(image) for image in images])

    def change(result: Tensor) -> Tensor:
        return (result.float() - images.float()).abs().mean(dim=(1, 2, 3))

    assert stats.ks_2samp(change(ours).numpy(), change(theirs).numpy()).pvalue > 1e-3


@pytest.mark.parametrize(
    "text",
    ["crop-flip", "rrc:size=20", "perspective", "auto-augment", "rand-augment:n=3:m=12", "auto-augment:crop=rrc"],
)
def test_augmentations_depend_only_on_the_sample(text: str) -> None:
    augment = build_augment(text)
    assert augment is not None
    images, samples = photographs(), torch.arange(100, 112)
    whole = augment(images, Keys(0, 4, samples))
    assert whole.dtype == torch.uint8
    order = torch.randperm(12)
    parts = [augment(images[rows], Keys(0, 4, samples[rows])) for rows in order.split(5)]
    assert whole[order].equal(torch.cat(parts))
    assert not whole.equal(augment(images, Keys(0, 5, samples)))
    assert not whole.equal(augment(images, Keys(0, 4, samples, view=1)))


def test_none_is_no_augmentation() -> None:
    assert build_augment("none") is None
    assert AUGMENTS.names() == ["none", "crop-flip", "rrc", "perspective", "auto-augment", "rand-augment"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("crop", "did you mean 'crop-flip'"),
        ("crop-flip:padding=-1", "padding"),
        ("crop-flip:padding_mode=edge", "padding_mode"),
        ("rrc:scale=0", "scale"),
        ("rrc:size=0", "size"),
        ("rrc:interpolation=lanczos", "interpolation must"),
        ("auto-augment:interpolation=bicubic", "crop"),
        ("perspective:p=1.5", "p must"),
        ("perspective:distortion_scale=2", "distortion_scale must"),
        ("auto-augment:policy=svhn", "policy"),
        ("auto-augment:size=20", "crop"),
        ("rand-augment:crop=pad", "crop"),
        ("rand-augment:n=0", "n must"),
        ("rand-augment:m=31", "m must"),
    ],
)
def test_invalid_arguments_raise(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        build_augment(text)
