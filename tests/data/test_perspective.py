"""Random perspective against torchvision, with the same corners."""

import pytest
import torch
from scipy import stats
from test_operations import photographs
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as tv

from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.perspective import RandomPerspective, random_corners


@pytest.mark.parametrize(("height", "width"), [(32, 32), (21, 40)])
def test_it_matches_torchvision_with_the_same_corners(height: int, width: int) -> None:
    torch.manual_seed(0)
    smooth = tv.resize(torch.randint(0, 256, (24, 3, 5, 5), dtype=torch.uint8), [height, width], antialias=True)
    keys = Keys(3, 1, torch.arange(24))
    ours = RandomPerspective(distortion_scale=0.6)(smooth, keys)
    draw = keys.uniform(10, "perspective")
    corners = random_corners(draw[:, :8], height, width, 0.6).tolist()
    start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    theirs = []
    for image, end, (chosen, flip) in zip(smooth, corners, draw[:, 8:].tolist(), strict=True):
        image = tv.perspective(image, start, end) if chosen < 0.5 else image
        theirs.append(image.flip(-1) if flip < 0.5 else image)
    wanted = torch.stack(theirs)
    # torchvision computes positions in float32, so that a few pixels are rounded to the other side.
    assert int((ours.int() - wanted.int()).abs().max()) <= 1
    assert float((ours != wanted).float().mean()) < 1e-3
    assert 6 <= int((draw[:, 8] < 0.5).sum()) <= 18  # both cases occur
    assert not ours.equal(smooth)


def test_corners_are_distributed_as_in_torchvision() -> None:
    ours = random_corners(Keys(0, 0, torch.arange(3000)).uniform(8, "corners"), 30, 41, 0.5)
    image = torch.zeros(3, 30, 41, dtype=torch.uint8)
    transform, theirs = v2.RandomPerspective(0.5), []
    for _ in range(3000):
        a, b, c, d, e, f, g, h = transform.make_params([image])["coefficients"]
        # The coefficients map moved corners to the corners of the image: invert them.
        matrix = torch.tensor([[a, b, c], [d, e, f], [g, h, 1]], dtype=torch.float64).inverse()
        corners = torch.tensor([[0, 0, 1], [40, 0, 1], [40, 29, 1], [0, 29, 1]], dtype=torch.float64) @ matrix.T
        theirs.append((corners[:, :2] / corners[:, 2:]).round())
    for mine, yours in zip(ours.flatten(1).double().T, torch.stack(theirs).flatten(1).T, strict=True):
        assert (mine.min(), mine.max()) == (yours.min(), yours.max())
        assert stats.ks_2samp(mine.numpy(), yours.numpy()).pvalue > 1e-3


def test_without_distortion_images_are_flipped_only() -> None:
    images, keys = photographs(), Keys(0, 0, torch.arange(12))
    assert RandomPerspective(p=0.0, flip=False)(images, keys).equal(images)
    assert RandomPerspective(distortion_scale=0.0, p=1.0, flip=False)(images, keys).equal(images)
    assert RandomPerspective()(images[:0], Keys(0, 0, torch.arange(0))).shape == images[:0].shape
