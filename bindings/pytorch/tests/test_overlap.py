"""Copies that do not block, from and to pinned memory on a stream of their own, run beside kernels of another stream: neither waits for the other.
On Polder's device `discrete`, whose copies take as long as its parameter `bandwidth` says."""
import pytest

from conftest import platform_has_statistics
from test_memory import run_alone

BEGIN = """
import torch
device = torch.device("opencl:0")
side, main = torch.Stream(device=device), torch.accelerator.current_stream(device)
host = torch.arange(1 << 19, dtype=torch.float32).pin_memory()  # 2 MiB
place = torch.zeros(1 << 19, device=device)
a = torch.rand(600, 600, device=device)
a @ a  # is compiled here
torch.accelerator.synchronize(device)

def event(stream):
    return stream.record_event(torch.Event(device=device, enable_timing=True))

def is_before(first, second):
    return first.elapsed_time(second) > 0
"""

COPY = {
    "to the device": "place.copy_(host, non_blocking=True)",
    "to the host": "host.copy_(place, non_blocking=True)",
}


@pytest.fixture(autouse=True)
def needs_polder():
    if not platform_has_statistics():
        pytest.skip("a setting of Polder makes copies slow")


def run(code, bandwidth):
    run_alone(BEGIN + code, POCL_DEVICES="discrete", POCL_DISCRETE0_PARAMETERS=f"bandwidth={bandwidth}")


@pytest.mark.parametrize("direction", COPY)
def test_copies_pass_kernels(direction):
    """Many copies that were enqueued after many kernels end before the last of these."""
    run(f"""
for round in range(20):
    for _ in range(200 << round // 4):  # more of them where the machine is fast
        b = a @ a
    kernels = event(main)
    with side:
        begin = event(side)
        for _ in range(3):
            {COPY[direction]}
        copies = event(side)
    torch.accelerator.synchronize(device)
    if is_before(begin, copies) and is_before(copies, kernels):
        break
else:
    raise SystemExit("the copies waited for the kernels")
assert torch.equal(place.cpu(), host)
""", "1G")


@pytest.mark.parametrize("direction", COPY)
def test_kernels_pass_copies(direction):
    """Kernels that were enqueued after slow copies end before these, and the call that copies returned before."""
    run(f"""
for round in range(5):
    with side:
        for _ in range(4 << round):  # longer where the machine is busy
            {COPY[direction]}
        copies = event(side)
    returned_early = not copies.query()
    begin = event(main)
    b = a @ a
    kernels = event(main)
    torch.accelerator.synchronize(device)
    if returned_early and is_before(begin, kernels) and is_before(kernels, copies):
        break
else:
    raise SystemExit("the kernels waited for the copies")
assert torch.equal(place.cpu(), host)
""", "64M")
