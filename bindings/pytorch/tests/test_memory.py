"""The allocator: addresses, statistics, limits, copies, pinned memory."""
import gc
import os
import pickle
import subprocess
import sys

import pytest
import torch

from conftest import platform_has_statistics

MIB = 1 << 20


def run_alone(code, **environment):
    """Runs code in a process of its own."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=600)
    assert run.returncode == 0, run.stderr


def test_no_bytes_is_an_empty_handle(device):
    empty = torch.empty(0, device=device)
    assert empty.data_ptr() == 0 and empty.untyped_storage().nbytes() == 0


def test_views_share_addresses(device):
    x = torch.arange(12.0, device=device).reshape(3, 4)
    assert x[1].data_ptr() == x.data_ptr() + 16
    assert x.t()[2:, 1].data_ptr() == x.data_ptr() + (4 + 2) * 4
    x[1:, 2].fill_(-1)
    x.view(-1)[0] = 9
    expected = torch.arange(12.0).reshape(3, 4)
    expected[1:, 2] = -1
    expected[0, 0] = 9
    assert torch.equal(x.cpu(), expected)
    alias = torch.empty(0, device=device).set_(x.untyped_storage(), 4, (4,), (1,))
    assert torch.equal(alias.cpu(), expected[1])


def test_a_storage_grows_and_keeps_its_bytes(device):
    x = torch.arange(4.0, device=device)
    x.resize_(1000)
    assert x[:4].tolist() == [0, 1, 2, 3]


def test_out_of_memory_is_reported_at_the_call_and_loses_nothing(device):
    kept = torch.ones(100, device=device)
    before = torch.opencl.memory_allocated(device)
    too_much = 1 << 50
    with pytest.raises(torch.OutOfMemoryError, match="out of memory: tried to allocate"):
        torch.empty(too_much, dtype=torch.uint8, device=device)
    assert torch.opencl.memory_allocated(device) == before
    assert torch.opencl.memory_stats(device)["num_ooms"] >= 1
    assert kept.sum().item() == 100


def test_a_memory_fraction_limits(device):
    gc.collect()
    total = torch.opencl.mem_get_info(device)[1]
    torch.opencl.set_per_process_memory_fraction(64 * MIB / total, device)
    try:
        with pytest.raises(torch.OutOfMemoryError, match="set_per_process_memory_fraction allows"):
            torch.empty(128 * MIB, dtype=torch.uint8, device=device)
        torch.empty(16 * MIB, dtype=torch.uint8, device=device)
    finally:
        torch.opencl.set_per_process_memory_fraction(1, device)
    with pytest.raises(ValueError):
        torch.opencl.set_per_process_memory_fraction(2, device)


def test_out_of_memory_in_the_backward_pass(device):
    total = torch.opencl.mem_get_info(device)[1]
    gc.collect()
    torch.accelerator.synchronize(device)
    start = torch.opencl.memory_allocated(device)
    weight = torch.ones(2 * MIB, device=device, requires_grad=True)
    small = torch.ones(4, device=device, requires_grad=True)
    loss = (weight.exp() * weight).sum() + (small * 2).sum()
    (small * 3).sum().backward()
    limit = torch.opencl.memory_allocated(device) + MIB
    torch.opencl.set_per_process_memory_fraction(limit / total, device)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            loss.backward()
    finally:
        torch.opencl.set_per_process_memory_fraction(1, device)
    # Its part of the graph was made last, and so is computed first: it has both gradients. The other parameter has none.
    assert small.grad.tolist() == [5] * 4 and weight.grad is None
    loss = (small * 2).sum()
    loss.backward()  # and the next step works
    assert small.grad.tolist() == [7] * 4
    del loss, weight, small
    gc.collect()
    assert torch.opencl.memory_allocated(device) == start


def test_statistics_count_what_tensors_take(device):
    gc.collect()
    torch.opencl.reset_peak_memory_stats(device)
    torch.opencl.reset_accumulated_memory_stats(device)
    before = torch.opencl.memory_allocated(device)
    x = torch.empty(MIB, dtype=torch.uint8, device=device)
    assert torch.opencl.memory_allocated(device) == before + MIB
    del x
    stats = torch.opencl.memory_stats(device)
    assert stats["allocated_bytes.all.current"] == before
    assert stats["allocated_bytes.all.peak"] == before + MIB == torch.opencl.max_memory_allocated(device)
    assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] == 1
    assert torch.opencl.memory_reserved(device) >= before
    free, total = torch.opencl.mem_get_info(device)
    assert 0 < free <= total
    assert "requested" in torch.opencl.memory_summary(device)
    assert torch.accelerator.memory_allocated(device) == before


def test_empty_cache_gives_memory_back(device):
    gc.collect()
    x = torch.ones(64 * MIB, dtype=torch.uint8, device=device)
    torch.accelerator.synchronize(device)
    held = torch.opencl.memory_reserved(device)
    del x
    torch.opencl.empty_cache()
    kept = torch.opencl.memory_reserved(device)
    assert kept <= held - 64 * MIB if platform_has_statistics() else kept <= held


def test_released_memory_is_taken_again_without_a_call_of_opencl(device):
    run_alone(f"""
import torch
def step():
    a = torch.ones(1000, device="{device}")
    b = a + 1
    return (b * a).sum().item()
assert step() == step() == 2000
torch.opencl.reset_accumulated_memory_stats("{device}")
addresses = set()
for size in range(900, 1000):  # all take blocks of 4096 bytes
    addresses.add(torch.empty(size, device="{device}").data_ptr())
    assert step() == 2000
stats = torch.opencl.memory_stats("{device}")
assert stats["num_device_alloc"] == stats["num_device_free"] == 0, stats
assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] >= 300, stats
assert len(addresses) <= 3  # step() has at most two of them
torch.opencl.empty_cache()
assert torch.opencl.memory_stats("{device}")["num_device_free"] >= 2
assert torch.opencl.memory_allocated("{device}") == 0
big = [torch.empty(1 << 18, device="{device}") for _ in range(200)]  # together more than what is kept
del big
assert torch.opencl.memory_stats("{device}")["num_device_free"] >= 100
""")


def test_released_memory_is_not_taken_by_another_stream_too_early(device):
    """The memory was used by the default stream alone until it was released, and that stream is not yet done with it."""
    run_alone(f"""
import torch
side = torch.Stream(device="{device}")
a = torch.ones(700, 700, device="{device}")
torch.accelerator.synchronize()
for _ in range(3):
    for _ in range(10):
        a = (a @ a) * (1 / 700)
    x = a[:512, :512] * 3  # waits for the products
    del x
    with side:
        y = torch.full((512, 512), 5.0, device="{device}")
    torch.accelerator.synchronize()
    assert y.eq(5).all().item(), y
""")


def test_the_snapshot_lists_live_tensors(device):
    x = torch.ones(1000, device=device)
    index = torch.device(device).index
    found = [segment for segment in torch.opencl.memory_snapshot(device) if segment["address"] == x.data_ptr()]
    assert len(found) == 1 and found[0]["device"] == index
    assert found[0]["total_size"] == 4000 == sum(block["size"] for block in found[0]["blocks"])
    from torch.cuda import _memory_viz

    assert "total_allocated: 3.9KiB" in _memory_viz.segsum({"segments": found, "device_traces": []})


def test_a_snapshot_is_written_for_the_viewer(device, tmp_path):
    """The viewer's page shows a device that has a trace, which may be empty, or it shows nothing; it places the blocks of a segment one after
    another from the segment's address, and reads pickles up to protocol 4."""
    x = torch.ones(1000, device=device)
    file = tmp_path / "snapshot.pickle"
    torch.opencl.memory._dump_snapshot(file)
    data = file.read_bytes()
    assert data[0] == 0x80 and data[1] <= 4
    snapshot = pickle.loads(data)
    assert snapshot["device_traces"] == [[]] * torch.opencl.device_count()
    assert x.data_ptr() in [segment["address"] for segment in snapshot["segments"]]
    for segment in snapshot["segments"]:
        assert segment["device"] < torch.opencl.device_count() and isinstance(segment["frames"], list)
        end = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == end and block["state"] == "active_allocated" and block["requested_size"] <= block["size"]
            end += block["size"]
        assert end == segment["address"] + segment["total_size"]


def test_memory_used_by_another_stream_is_not_reused_too_early(device):
    side = torch.Stream(device=device)
    for _ in range(20):
        x = torch.full((MIB,), 1.0, device=device)
        ready = torch.accelerator.current_stream(device).record_event()
        with side:
            side.wait_event(ready)
            y = x
            for _ in range(3):
                y = y + 1
            x.record_stream(side)
        del x
        torch.full((MIB,), -100.0, device=device)  # may take the memory of x
        side.synchronize()
        assert y[::4096].eq(4).all().item()


def test_copies_between_devices(two_devices):
    a, b = two_devices
    x = torch.arange(1000.0, device=a)
    for name in (b, a):
        x = (x + 1).to(name)
    assert torch.equal(x.cpu(), torch.arange(1000.0) + 2)
    y = torch.zeros(10, 10, device=b)
    y[:, ::2] = torch.ones(10, 5, device=a, dtype=torch.int32)
    assert y.sum().item() == 50


def test_copies_in_order_with_their_streams(two_devices):
    a, b = two_devices
    x = torch.zeros(MIB, device=a)
    for step in range(10):
        x += 1
        y = x.to(b, non_blocking=True)
        assert y[::65536].eq(step + 1).all().item()


def test_pinned_memory(device):
    x = torch.arange(1000.0).pin_memory()
    assert x.is_pinned() and not torch.arange(3).is_pinned()
    y = x.to(device, non_blocking=True)
    z = torch.empty(1000, pin_memory=True)
    z.copy_(y, non_blocking=True)
    torch.accelerator.synchronize(device)
    assert torch.equal(z, torch.arange(1000.0))


def test_figures_of_pinned_memory(device):
    if torch.cuda.is_available():
        pytest.skip("pin_memory=True is CUDA's memory there")
    torch.ones(1, device=device)
    before = torch.opencl.host_memory_stats()
    x, y = (torch.empty(size, dtype=torch.uint8, pin_memory=True) for size in (1000, 500))
    del y
    after = torch.opencl.host_memory_stats()
    grown = {name: after[name] - before[name] for name in after}
    assert grown["active_bytes.current"] == grown["allocated_bytes.current"] == 1000 and grown["active_bytes.allocated"] == 1500
    assert grown["active_requests.current"] == 1 and grown["num_host_alloc"] == 2 and grown["num_host_free"] == 1
    assert after["active_bytes.peak"] >= before["active_bytes.current"] + 1500
    torch.opencl.reset_peak_host_memory_stats()
    torch.opencl.reset_accumulated_host_memory_stats()
    now = torch.opencl.host_memory_stats()
    assert now["active_bytes.peak"] == now["active_bytes.current"] == after["active_bytes.current"]
    assert now["num_host_alloc"] == now["active_bytes.freed"] == 0
    assert x.is_pinned()


@pytest.mark.parametrize("addresses", ["unified", "buffers", "none"])
def test_ways_of_having_addresses(addresses):
    """cl_intel_unified_shared_memory, cl_ext_buffer_device_address with a context for each device, and buffers without addresses."""
    code = """
import torch, torch_opencl
n = torch.opencl.device_count()
x = torch.arange(10.0, device="opencl:0").reshape(2, 5)
y = x[1, 1:].to(f"opencl:{n - 1}") * 2
assert y.tolist() == [12, 14, 16, 18], y
z = torch.empty(4, device="opencl:0").copy_(y)
assert z.tolist() == [12, 14, 16, 18]
assert (z[1:] @ z[1:]).item() == 14 * 14 + 16 * 16 + 18 * 18
z[2:].fill_(3)
assert z.tolist() == [12, 14, 3, 3] and z.data_ptr() + 8 == z[2:].data_ptr()
assert torch.empty(0, device="opencl:0").sum().item() == 0
w = torch.nn.functional.layer_norm(x, (5,)).softmax(-1).sort()[0].cumsum(1)[:, -1]
assert torch.allclose(w.cpu(), torch.ones(2))
"""
    if addresses == "buffers" and not platform_has_statistics():
        pytest.skip("only Polder is sure to have both extensions")
    run_alone(code, TORCH_OPENCL_ADDRESSES=addresses)


def test_a_lazy_clone_is_copied_when_it_is_written(device):
    x = torch.arange(1000.0, device=device)
    y = torch._lazy_clone(x)
    y.add_(1)
    assert torch.equal(x.cpu(), torch.arange(1000.0)) and torch.equal(y.cpu(), torch.arange(1000.0) + 1)
    z = torch.empty_like(x)
    z.untyped_storage().copy_(x.untyped_storage())
    assert torch.equal(z, x)


@pytest.mark.parametrize("policy", ["backend:bufalloc", "backend:caching,max_split_size_mb:32", "backend:bucket"])
def test_settings_of_the_implementation_choose_how_memory_is_allocated(policy):
    if not platform_has_statistics():
        pytest.skip("a setting of Polder")
    run_alone("""
import torch
sizes = [1000, 70000, 3 << 20, 12345]
for turn in range(3):
    kept = [torch.full((size,), float(size), device="opencl") for size in sizes]
    assert all((x == size).all() for x, size in zip(kept, sizes))
    assert torch.opencl.memory_allocated() >= 4 * sum(sizes)
    del kept
torch.opencl.empty_cache()
assert torch.opencl.memory_allocated() == 0
assert torch.opencl.memory_reserved() <= 64 << 20
""", POLDER_ALLOC_CONF=policy, POCL_DEVICES="discrete")


def test_a_full_memory_is_reported_with_what_takes_it():
    if not platform_has_statistics():
        pytest.skip("the report is Polder's")
    run_alone("""
import torch
kept = []
try:
    for _ in range(40):
        kept.append(torch.ones(1 << 20, dtype=torch.uint8, device="opencl"))
    raise SystemExit("the memory is never full")
except torch.OutOfMemoryError as error:
    assert all(part in str(error) for part in ("tried to allocate 1048576", "live 16777216 in 16 blocks", "trimmed")), error
count = len(kept)
del kept[0]
kept.append(torch.ones(1 << 20, dtype=torch.uint8, device="opencl"))  # what is released is there again
assert 8 <= count <= 16
""", POCL_DEVICES="discrete", POCL_DISCRETE0_PARAMETERS="memory=16M")
