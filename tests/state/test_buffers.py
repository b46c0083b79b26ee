import torch
from torch import nn

from classgap.state.buffers import write


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = 1 + self.seen  # what backward needs, from before the write
        result = (x * scale).sum()
        with torch.no_grad():
            write(self, "seen", torch.ones(2), torch.tensor([0, 2]))
        return result


def test_eager_writes_are_in_place() -> None:
    counter = Counter()
    buffer = counter.seen
    counter(torch.ones(3))
    assert counter.seen is buffer
    assert buffer.tolist() == [1.0, 0.0, 1.0]


def test_compiled_backward_sees_the_values_before_the_write() -> None:
    counter = Counter()
    x = torch.ones(3, requires_grad=True)
    torch.compile(counter, fullgraph=True, backend="aot_eager")(x).backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    assert counter.seen.tolist() == [1.0, 0.0, 1.0]
    assert "seen" in counter.state_dict()
