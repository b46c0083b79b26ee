import pytest
import torch
from scipy import stats

from classgap.data.transforms.mix import CutMix, Mixup, build_mix


@pytest.mark.parametrize(("make", "alpha"), [(Mixup, 0.2), (Mixup, 1.0), (CutMix, 1.0), (CutMix, 3.0)])
def test_lam_follows_the_beta_distribution(make, alpha: float) -> None:
    lams = [make(alpha).make_params(0, 0, step, 2).lam for step in range(2000)]
    assert stats.kstest(lams, stats.beta(alpha, alpha).cdf).pvalue > 1e-3


def test_params_depend_on_seed_epoch_and_step() -> None:
    def params(seed: int = 0, epoch: int = 0, step: int = 0) -> tuple:
        made = CutMix().make_params(seed, epoch, step, 50)
        return made.partner.tolist(), made.lam, made.box

    assert params() == params()
    assert len({str(each) for each in (params(), params(seed=1), params(epoch=1), params(step=1))}) == 4
    assert sorted(params()[0]) == list(range(50))


def test_batches_are_mixed_with_probability_p() -> None:
    mix = build_mix("mixup:p=0.3")
    unmixed = sum(mix.make_params(0, 0, step, 2).lam == 1.0 for step in range(1000))
    assert stats.binomtest(unmixed, 1000, 0.7).pvalue > 1e-3
    inputs = torch.randn(2, 5)
    still = next(made for made in (mix.make_params(0, 0, step, 2) for step in range(100)) if made.lam == 1.0)
    assert mix(inputs, torch.zeros(2, 5), still)[0].equal(inputs)


def test_box_areas_match_lam() -> None:
    mix = CutMix()
    ones, zeros = torch.ones(1, 1, 64, 48), torch.zeros(1, 1, 64, 48)
    sizes = []
    for step in range(500):
        params = mix.make_params(0, 0, step, 1)
        mixed, lam = mix(ones, zeros, params)
        assert lam == pytest.approx(float(mixed.mean()), abs=1e-6)
        assert lam >= params.lam - 0.03  # the box may hang over the edge, never the other way; pixels round
        gone = (mixed == 0)[0, 0]
        rows, columns = gone.any(dim=1).sum(), gone.any(dim=0).sum()
        assert int(gone.sum()) == int(rows * columns)  # one box
        sizes.append((params.lam, lam))
    inside = [(wanted, got) for wanted, got in sizes if abs(wanted - got) < 0.03]
    assert len(inside) > 50


def test_box_positions_are_uniform() -> None:
    # Whether the middle of the image is covered by a centered box of side s has probability s², as far as s ≤ 1.
    covered, expected = 0, 0.0
    for step in range(2000):
        params = CutMix().make_params(0, 0, step, 1)
        top, left, bottom, right = params.box
        covered += top < 0.5 <= bottom and left < 0.5 <= right
        expected += 1 - params.lam
    assert abs(covered - expected) < 4 * (2000 * 0.25) ** 0.5


def test_names_and_options() -> None:
    assert build_mix("mixup:alpha=0.4") == Mixup(0.4)
    assert build_mix("cutmix") == CutMix(1.0)
