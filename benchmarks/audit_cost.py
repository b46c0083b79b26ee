"""Cost of an audit: time, peak memory and size of the HTML page, measured in separate processes.

    python benchmarks/audit_cost.py            # all sizes below
    python benchmarks/audit_cost.py imagenet   # one of them
    python benchmarks/audit_cost.py --files    # only the audits of files; stores results/audit_cost.json
    python benchmarks/audit_cost.py docs       # writes the stored figures into docs/audit.md

Random predictions: Gaussian features of different spread around class means, and a linear head. Creating them is not
measured; the audit (with features, head, training counts, map and diagnosis) and writing the page are. Peak memory is
the maximum resident size, including the inputs. On a busy machine OMP_NUM_THREADS=1 is often faster.

Audits of files: half-precision scores and features of 50,000 to 1,281,167 samples (ImageNet's training set) are written
to an .npz file in the temporary directory, 3.9 GB for the largest, and audited with an HTML page. Their time is
compared with a log-softmax of the scores in single precision, block by block, over the same file in the page cache, in
blocks of 8,192 rows and in those with which it is fastest, 1,000 rows; the shortest of three passes counts. All are the
time of one processor, so that other programs matter less. Their memory is the peak of the anonymous resident memory,
which leaves out the page cache.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import stored

SIZES = {  # samples, classes, features; limits in seconds, bytes of memory, bytes of HTML
    "imagenet": ((50_000, 1_000, 2_048), (15.0, 3e9, 1e6)),
    "ten-thousand-classes": ((50_000, 10_000, 256), (60.0, 6e9, 1e7)),
}

FILES = (50_000, 200_000, 1_281_167)  # samples, of 1,000 classes and 512 features
FILE_CLASSES, FILE_FEATURES = 1_000, 512
BLOCKS = {"log_softmax": 8_192_000, "fastest_log_softmax": 1_000_000}  # entries of a block
FILE_MEMORY, FILE_RATIO = 3e9, 5.0  # limits for the largest: bytes, and times the log-softmax

RESULTS = stored.RESULTS / "audit_cost.json"
SECTION = stored.Section("docs/audit.md", "cost of files")


def measure(samples: int, classes: int, features: int) -> dict[str, float]:
    import torch

    from classgap.audit import Audit
    from classgap.report import write_html

    generator = torch.Generator().manual_seed(0)
    means = torch.randn(classes, features, generator=generator)
    targets = torch.arange(samples) % classes
    width = torch.linspace(1.0, 20.0, classes) * (features / 2048) ** 0.5  # about 70 % are predicted right
    cloud = torch.randn(samples, features, generator=generator)
    cloud.mul_(width[targets].unsqueeze(1)).add_(means[targets])
    head = torch.nn.Linear(features, classes)
    with torch.no_grad():
        head.weight.copy_(means / features**0.5)
        head.bias.copy_(-means.square().sum(dim=1) / (2 * features**0.5))
        logits = head(cloud)
    counts = torch.linspace(5, 1300, classes).round()
    inputs = (logits.nbytes + cloud.nbytes) / 1e9
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        audit = Audit.from_predictions(logits, targets, features=cloud, head=head, train_counts=counts)
        audited = time.perf_counter()
        write_html(audit, Path(folder) / "report.html")
        written = time.perf_counter()
        size = (Path(folder) / "report.html").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "audit_s": audited - start,
        "html_s": written - audited,
        "peak_bytes": peak,
        "inputs_gb": inputs,
        "html_bytes": size,
        "accuracy": audit.overall.accuracy,
        "threads": torch.get_num_threads(),
    }


def write_file(path: Path, samples: int) -> None:
    """Write the predictions of a linear head on Gaussian features in random order, block by block."""
    import numpy as np
    import torch

    generator = torch.Generator().manual_seed(0)
    means = torch.randn(FILE_CLASSES, FILE_FEATURES, generator=generator)
    targets = (torch.arange(samples) % FILE_CLASSES)[torch.randperm(samples, generator=generator)]
    width = torch.linspace(1.0, 20.0, FILE_CLASSES) * (FILE_FEATURES / 2048) ** 0.5
    weight, bias = means.T / FILE_FEATURES**0.5, -means.square().sum(dim=1) / (2 * FILE_FEATURES**0.5)
    parts = {"logits": FILE_CLASSES, "features": FILE_FEATURES}
    files = {name: path.with_name(f"{name}.npy") for name in parts}
    arrays = {
        name: np.lib.format.open_memmap(files[name], "w+", np.float16, (samples, columns))
        for name, columns in parts.items()
    }
    for start in range(0, samples, 20_000):
        labels = targets[start : start + 20_000]
        cloud = torch.randn(len(labels), FILE_FEATURES, generator=generator) * width[labels, None] + means[labels]
        arrays["features"][start : start + 20_000] = cloud.half().numpy()
        arrays["logits"][start : start + 20_000] = (cloud @ weight + bias).half().numpy()
    np.savez(path, targets=targets.numpy(), **arrays)
    del arrays
    for file in files.values():
        file.unlink()


def measure_file(path: str) -> dict[str, float]:
    import numpy as np
    import torch

    from classgap.audit import Audit, read_predictions
    from classgap.audit.io.rows import keep_freed_memory, row_chunks
    from classgap.report import write_html

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)  # imports are not measured
    warm = Audit.from_predictions(rng.normal(size=(60, 3)), rng.integers(0, 3, 60), features=rng.normal(size=(60, 4)))
    write_html(warm, Path(path).with_name("report.html"))
    keep_freed_memory()  # otherwise the log-softmax may take four times as long
    passes: dict[str, list[float]] = {name: [] for name in BLOCKS}
    for name in [*BLOCKS] * 3:
        logits = read_predictions(path).logits_NK
        start = time.process_time()
        for rows in row_chunks(*logits.shape, entries=BLOCKS[name]):
            logits[rows].float().log_softmax(dim=1)
        passes[name].append(time.process_time() - start)
    peak, done = [_anonymous_bytes()], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peak.append(max(peak[-1], _anonymous_bytes()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    clock, start = time.perf_counter(), time.process_time()
    audit = Audit.from_file(path)
    write_html(audit, Path(path).with_name("report.html"))
    seconds, elapsed = time.process_time() - start, time.perf_counter() - clock
    done.set()
    watcher.join()
    return {
        "seconds": seconds,
        "elapsed": elapsed,
        **{name: min(seconds) for name, seconds in passes.items()},
        "peak_bytes": peak[-1],
        "accuracy": audit.overall.accuracy,
    }


def _anonymous_bytes() -> int:
    found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def compare_files() -> int:
    """Audit a file of each size, and store the figures; return the number of limits that the largest exceeds."""
    measured = []
    print(f"files of half precision: {FILE_CLASSES:,} classes x {FILE_FEATURES} features, with HTML, one processor")
    for samples in FILES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "predictions.npz"
            write_file(path, samples)
            command = [sys.executable, __file__, "--measure-file", str(path)]
            one = os.environ | {"OMP_NUM_THREADS": "1"}  # NumPy's threads too: they spin while they wait
            found = json.loads(subprocess.run(command, env=one, check=True, capture_output=True, text=True).stdout)
            size = path.stat().st_size
        measured.append({"samples": samples, "bytes": size, **found})
        ratio = found["seconds"] / found["log_softmax"]
        print(
            f"  {samples:9,} samples ({size / 1e9:.2f} GB)  {found['seconds']:5.1f} s "
            f"({found['elapsed']:.1f} s elapsed), "
            f"{1e6 * found['seconds'] / samples:5.1f} µs a sample, {ratio:.1f} times the log-softmax "
            f"({found['log_softmax']:.2f} s; {found['seconds'] / found['fastest_log_softmax']:.1f} times the fastest, "
            f"{found['fastest_log_softmax']:.2f} s), "
            f"{found['peak_bytes'] / 1e9:.2f} GB beyond the file cache"
        )
    print(f"  limits for the largest: {FILE_RATIO:g} times, {FILE_MEMORY / 1e9:g} GB")
    stored.write(RESULTS, measured)
    return int(ratio > FILE_RATIO) + int(found["peak_bytes"] > FILE_MEMORY)


def describe_files(measured: list[dict[str, float]]) -> str:
    """Return the table of docs/audit.md and its note as Markdown."""
    rows = [
        "| samples | file | CPU time | a log-softmax of the scores | memory beyond the file cache |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {each['samples']:,} | {each['bytes'] / 1e9:.2f} GB | {each['seconds']:.1f} s "
        f"| {each['log_softmax']:.2f} s | {each['peak_bytes'] / 1e9:.1f} GB |"
        for each in measured
    ]
    last = measured[-1]
    ratio, fastest = (last["seconds"] / last[name] for name in BLOCKS)
    note = (
        f"The largest audit takes {ratio:.1f} times as long as the log-softmax in blocks of 8,192 rows (target:\nat "
        f"most {FILE_RATIO:g}), and {fastest:.1f} times as long\nas in the fastest blocks, of 1,000 rows."
    )
    return "\n".join(rows) + f"\n\n{note}\n"


def main() -> int:
    wanted = sys.argv[1:] or [*SIZES, "--files"]
    if wanted[0] == "--measure-file":
        print(json.dumps(measure_file(wanted[1])))
        return 0
    if wanted[0] == "docs":
        SECTION.write(describe_files(stored.read(RESULTS)))
        return 0
    if wanted[0] == "--measure":
        print(json.dumps(measure(*map(int, wanted[1:]))))
        return 0
    missed = 0
    for name in wanted:
        if name == "--files":
            missed += compare_files()
            continue
        shape, (seconds, memory, page) = SIZES[name]
        command = [sys.executable, __file__, "--measure", *map(str, shape)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        total = found["audit_s"] + found["html_s"]
        shown = "{:,} samples x {:,} classes x {:,} features".format(*shape)
        print(f"{name}: {shown}, {found['accuracy']:.1%} predicted right")
        parts = f"audit {found['audit_s']:.1f}, HTML {found['html_s']:.1f}, {found['threads']} threads"
        print(f"  time    {total:6.1f} s   ({parts}; limit {seconds:g})")
        print(
            f"  memory  {found['peak_bytes'] / 1e9:6.2f} GB  (inputs {found['inputs_gb']:.2f}; limit {memory / 1e9:g})"
        )
        print(f"  HTML    {found['html_bytes'] / 1e6:6.2f} MB  (limit {page / 1e6:g})")
        missed += (total > seconds) + (found["peak_bytes"] > memory) + (found["html_bytes"] > page)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
