"""Memory of OpenCL devices, with the names and meanings of torch.cuda's functions.

The figures are those of c10::DeviceAllocator. This package counts the bytes that tensors requested. The OpenCL implementation reports the
reserved bytes if it has cl_polder_memory_statistics; otherwise they are equal to the requested ones.
"""
import pickle

import torch

_ops = torch.ops.opencl


def _index(device):
    from .opencl import _index as index

    return index(device)


def empty_cache():
    """Gives unused memory back to the device or the system."""
    torch.accelerator.memory.empty_cache()


def memory_stats(device=None):
    return torch.accelerator.memory.memory_stats(_index(device))


def memory_allocated(device=None):
    return torch.accelerator.memory.memory_allocated(_index(device))


def max_memory_allocated(device=None):
    return torch.accelerator.memory.max_memory_allocated(_index(device))


def memory_reserved(device=None):
    return torch.accelerator.memory.memory_reserved(_index(device))


def max_memory_reserved(device=None):
    return torch.accelerator.memory.max_memory_reserved(_index(device))


def reset_peak_memory_stats(device=None):
    torch.accelerator.memory.reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device=None):
    torch.accelerator.memory.reset_accumulated_memory_stats(_index(device))


def host_memory_stats():
    """Figures of pinned memory, with the names of torch.cuda.host_memory_stats. Released memory is not kept, so that all of it is active."""
    numbers = _ops.pinned_stats()
    stats = {}
    for names, figures in ((("active_requests", "allocations"), numbers[:4]), (("active_bytes", "allocated_bytes"), numbers[4:])):
        for name in names:
            stats.update({f"{name}.{kind}": figure for kind, figure in zip(("current", "peak", "allocated", "freed"), figures)})
    stats["num_host_alloc"], stats["num_host_free"] = numbers[2:4]
    return stats


def reset_accumulated_host_memory_stats():
    _ops.reset_accumulated_pinned_stats()


def reset_peak_host_memory_stats():
    _ops.reset_peak_pinned_stats()


def mem_get_info(device=None):
    """Free and total bytes."""
    return torch.accelerator.memory.get_memory_info(_index(device))


def set_per_process_memory_fraction(fraction, device=None):
    """Lets tensors take at most this fraction of the device's memory; more is an OutOfMemoryError."""
    _ops.set_memory_fraction(_index(device), float(fraction))


def memory_snapshot(device=None):
    """Live allocations as segments of one block each, in the form that torch.cuda.memory_snapshot has."""
    devices = range(_ops.device_count()) if device is None else [_index(device)]
    segments = []
    for index in devices:
        numbers = _ops.memory_blocks(index)
        for address, size in zip(numbers[::2], numbers[1::2]):
            block = {"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": []}
            segments.append({
                "device": index, "address": address, "total_size": size, "allocated_size": size, "active_size": size,
                "requested_size": size, "stream": 0, "segment_type": "large" if size >= 1 << 20 else "small",
                "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": [block],
            })
    return segments


def _snapshot(device=None):
    """The snapshot as torch.cuda.memory._snapshot returns it. No history is recorded, so that each device's trace is empty."""
    return {"segments": memory_snapshot(device), "device_traces": [[] for _ in range(_ops.device_count())]}


def _dump_snapshot(filename="dump_snapshot.pickle"):
    """Writes the snapshot to a file that PyTorch's viewer (pytorch.org/memory_viz) opens. It reads pickles up to protocol 4."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file, protocol=4)


def _format(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.1f} {unit}" if unit != "B" else f"{count} B"
        count /= 1024


def memory_summary(device=None, abbreviated=False):
    """A table of the memory's figures."""
    index = _index(device)
    stats = memory_stats(index)
    lines = [f"opencl:{index} ({_ops.device_name(index)})", f"{'':<12}{'now':>12}{'peak':>12}"]
    kinds = ("allocated_bytes", "reserved_bytes") if abbreviated else (
        "requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes", "inactive_split_bytes")
    for kind in kinds:
        now, peak = (stats.get(f"{kind}.all.{what}", 0) for what in ("current", "peak"))
        lines.append(f"{kind.removesuffix('_bytes'):<12}{_format(now):>12}{_format(peak):>12}")
    lines.append(f"out of memory: {stats.get('num_ooms', 0)}, retries: {stats.get('num_alloc_retries', 0)}")
    return "\n".join(lines)
