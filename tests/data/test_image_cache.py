import multiprocessing
import os
import re
import resource
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import as_tensor_layout, pixels, write

from classgap.data.sources import image_cache
from classgap.data.sources.image_cache import DecodeOptions, decode_images
from classgap.data.sources.images import read_image


def files(base: Path, count: int = 4) -> list[str]:
    return [str(write(base / f"{seed}.png", seed)) for seed in range(count)]


def expected(count: int = 4) -> np.ndarray:
    return np.stack([as_tensor_layout(pixels(seed)) for seed in range(count)])


def cached(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.safetensors"))


def test_images_come_from_the_cache_the_second_time(tmp_path: Path, cache: Path) -> None:
    paths = files(tmp_path)
    assert np.array_equal(decode_images(paths, DecodeOptions()).images.numpy(), expected())
    (file,) = cached(cache)
    written = file.stat().st_mtime_ns
    again = decode_images(paths, DecodeOptions())
    assert np.array_equal(again.images.numpy(), expected())
    assert again.kept.tolist() == [0, 1, 2, 3]
    assert file.stat().st_mtime_ns == written
    assert [each.name for each in file.parent.iterdir() if each.suffix not in (".lock", ".safetensors")] == []


def test_a_changed_file_is_decoded_again(tmp_path: Path) -> None:
    paths = files(tmp_path)
    decode_images(paths, DecodeOptions())
    write(Path(paths[1]), seed=99)
    os.utime(paths[1], (1, 1))
    assert np.array_equal(decode_images(paths, DecodeOptions()).images[1].numpy(), as_tensor_layout(pixels(99)))


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_truncated_cache_file_is_rebuilt(tmp_path: Path, cache: Path, keep: int) -> None:
    paths = files(tmp_path)
    decode_images(paths, DecodeOptions())
    (file,) = cached(cache)
    whole = file.read_bytes()
    file.write_bytes(whole[:keep])
    assert np.array_equal(decode_images(paths, DecodeOptions()).images.numpy(), expected())
    assert file.stat().st_size == len(whole)


def test_an_invalid_cache_file_is_rebuilt(tmp_path: Path, cache: Path) -> None:
    from safetensors.torch import save_file

    paths = files(tmp_path)
    decode_images(paths, DecodeOptions())
    (file,) = cached(cache)
    save_file({"kept": torch.arange(4), "images": torch.zeros(4, 3, 2, 2, dtype=torch.uint8)}, file)
    assert np.array_equal(decode_images(paths, DecodeOptions()).images.numpy(), expected())


def test_writing_into_images_does_not_change_the_cache(tmp_path: Path) -> None:
    paths = files(tmp_path)
    decode_images(paths, DecodeOptions())
    decode_images(paths, DecodeOptions()).images.zero_()
    assert np.array_equal(decode_images(paths, DecodeOptions()).images.numpy(), expected())


def test_an_unwritable_cache_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "file"))
    found = decode_images(files(tmp_path / "images"), DecodeOptions())
    assert re.search(r"could not be cached .*CLASSGAP_CACHE", found.cache_error)
    assert np.array_equal(found.images.numpy(), expected())


def test_a_full_disk_is_reported(tmp_path: Path, cache: Path) -> None:
    paths = files(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))  # a file may have 300 bytes; Python ignores the signal
    try:
        found = decode_images(paths, DecodeOptions())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "could not be cached" in found.cache_error
    assert np.array_equal(found.images.numpy(), expected())
    assert cached(cache) == []
    assert list((cache / "decoded").glob(".*")) == []


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path, cache: Path) -> None:
    paths = files(tmp_path)

    def killed() -> None:
        os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)  # written, and not yet in its place
        decode_images(paths, DecodeOptions())

    process = multiprocessing.get_context("fork").Process(target=killed)
    process.start()
    process.join(60)
    (left,) = (path for path in (cache / "decoded").iterdir() if path.suffix != ".lock")
    other = left.with_name(left.name.replace(left.name[1:9], "another1"))  # which may be being written
    other.write_text("half of")
    assert np.array_equal(decode_images(paths, DecodeOptions()).images.numpy(), expected())
    assert len(cached(cache)) == 1
    assert not left.exists()
    assert other.exists()


def test_concurrent_loaders_agree_and_one_decodes(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, log, forks = files(tmp_path, 12), tmp_path / "log", multiprocessing.get_context("fork")
    start, sums = forks.Barrier(3), forks.SimpleQueue()

    def slow(path: str, height: int, width: int) -> np.ndarray:
        with log.open("a") as file:
            file.write("x")
        time.sleep(0.02)
        return read_image(path, height, width)

    def load() -> None:
        start.wait(30)
        sums.put(int(decode_images(paths, DecodeOptions()).images.long().sum()))

    monkeypatch.setattr(image_cache, "read_image", slow)
    workers = [forks.Process(target=load) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [sums.get() for worker in workers if worker.exitcode == 0] == [expected(12).sum(dtype=int)] * 3
    assert len(log.read_text()) == 12
    assert len(cached(cache)) == 1


def test_different_sizes_become_squares_of_256(tmp_path: Path) -> None:
    paths = [str(write(tmp_path / "a.png", 0, 5, 9)), str(write(tmp_path / "b.png", 1, 9, 5))]
    assert decode_images(paths, DecodeOptions()).images.shape == (2, 3, 256, 256)
    assert decode_images(paths, DecodeOptions(size=4)).images.shape == (2, 3, 4, 4)


def test_a_common_size_is_kept_unless_it_is_large(tmp_path: Path) -> None:
    assert decode_images([str(write(tmp_path / "a.png", 0, 5, 300))], DecodeOptions()).images.shape == (1, 3, 5, 300)
    assert decode_images([str(write(tmp_path / "b.png", 0, 257, 300))], DecodeOptions()).images.shape == (
        1,
        3,
        256,
        256,
    )


def test_unreadable_and_missing_files_are_reported(tmp_path: Path) -> None:
    paths = files(tmp_path, 5)
    whole = Path(paths[1]).read_bytes()
    Path(paths[1]).write_bytes(whole[: len(whole) // 2])  # the header is there, pixels are not
    Path(paths[2]).write_text("no image")
    Path(paths[3]).unlink()
    for _ in range(2):  # decoded, then from the cache
        found = decode_images(paths, DecodeOptions())
        assert sorted(found.errors) == [1, 2, 3]
        assert found.errors[3] == "file not found"
        assert found.kept.tolist() == [0, 4]
        assert np.array_equal(found.images.numpy(), expected(5)[[0, 4]])


def test_above_the_limit_images_are_not_kept_but_can_be_checked(tmp_path: Path) -> None:
    paths = files(tmp_path, 3)
    whole = Path(paths[1]).read_bytes()
    Path(paths[1]).write_bytes(whole[:-40])
    limit = 3 * 6 * 6 * 3 / 1e9
    assert decode_images(paths, DecodeOptions(cache_gb=limit)).images is not None
    quick = decode_images(paths, DecodeOptions(cache_gb=limit / 2))
    assert quick.images is None
    assert quick.kept.tolist() == [0, 1, 2]
    assert decode_images(paths, DecodeOptions(cache_gb=limit / 2, check=True)).kept.tolist() == [0, 2]
