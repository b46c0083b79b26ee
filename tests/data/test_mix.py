import pytest
import torch
from scipy import stats

from classgap.data.transforms.mix import CutMix, Mixup, build_mix


@pytest.mark.parametrize(("make", "alpha"), [(Mixup, 0.2), (Mixup, 1.0), (CutMix, 1.0), (CutMix, 3.0)])
def test_shares_follow_the_beta_distribution(make, alpha: float) -> None:
    shares = [make(alpha).recipe(0, 0, step, 2).share for step in range(2000)]
    assert stats.kstest(shares, stats.beta(alpha, alpha).cdf).pvalue > 1e-3


def test_recipes_depend_on_seed_epoch_and_step_alone() -> None:
    def recipe(seed: int = 0, epoch: int = 0, step: int = 0) -> tuple:
        made = CutMix().recipe(seed, epoch, step, 50)
        return made.partner.tolist(), made.share, made.box

    assert recipe() == recipe()
    assert len({str(each) for each in (recipe(), recipe(seed=1), recipe(epoch=1), recipe(step=1))}) == 4
    assert sorted(recipe()[0]) == list(range(50))


def test_only_some_batches_are_mixed_if_so_asked() -> None:
    mix = build_mix("mixup:p=0.3")
    unmixed = sum(mix.recipe(0, 0, step, 2).share == 1.0 for step in range(1000))
    assert stats.binomtest(unmixed, 1000, 0.7).pvalue > 1e-3
    inputs = torch.randn(2, 5)
    still = next(made for made in (mix.recipe(0, 0, step, 2) for step in range(100)) if made.share == 1.0)
    assert mix(inputs, torch.zeros(2, 5), still)[0].equal(inputs)


def test_cut_boxes_hold_the_area_that_the_share_says() -> None:
    mix = CutMix()
    ones, zeros = torch.ones(1, 1, 64, 48), torch.zeros(1, 1, 64, 48)
    sizes = []
    for step in range(500):
        recipe = mix.recipe(0, 0, step, 1)
        mixed, share = mix(ones, zeros, recipe)
        assert share == pytest.approx(float(mixed.mean()), abs=1e-6)
        assert share >= recipe.share - 0.03  # the box may hang over the edge, never the other way; pixels round
        gone = (mixed == 0)[0, 0]
        rows, columns = gone.any(dim=1).sum(), gone.any(dim=0).sum()
        assert int(gone.sum()) == int(rows * columns)  # one box
        sizes.append((recipe.share, share))
    inside = [(wanted, got) for wanted, got in sizes if abs(wanted - got) < 0.03]
    assert len(inside) > 50


def test_where_boxes_are_is_uniform() -> None:
    # Whether the middle of the image is covered by a centred box of side s has probability s², as far as s ≤ 1.
    covered, expected = 0, 0.0
    for step in range(2000):
        recipe = CutMix().recipe(0, 0, step, 1)
        top, left, bottom, right = recipe.box
        covered += top < 0.5 <= bottom and left < 0.5 <= right
        expected += 1 - recipe.share
    assert abs(covered - expected) < 4 * (2000 * 0.25) ** 0.5


def test_names_and_options() -> None:
    assert build_mix("mixup:alpha=0.4") == Mixup(0.4)
    assert build_mix("cutmix") == CutMix(1.0)
