"""Cost of an audit: time, peak memory and size of the HTML page, measured in separate processes.

    python benchmarks/audit_cost.py            # both sizes below
    python benchmarks/audit_cost.py imagenet   # one of them

Random predictions: Gaussian features of different spread around class means, and a linear head. Creating them is not
measured; the audit (with features, head, training counts, map and diagnosis) and writing the page are. Peak memory is
the maximum resident size, including the inputs. On a busy machine OMP_NUM_THREADS=1 is often faster.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = {  # samples, classes, features; limits in seconds, bytes of memory, bytes of HTML
    "imagenet": ((50_000, 1_000, 2_048), (15.0, 3e9, 1e6)),
    "ten-thousand-classes": ((50_000, 10_000, 256), (60.0, 6e9, 1e7)),
}


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


def main() -> int:
    wanted = sys.argv[1:] or list(SIZES)
    if wanted[0] == "--measure":
        print(json.dumps(measure(*map(int, wanted[1:]))))
        return 0
    missed = 0
    for name in wanted:
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
