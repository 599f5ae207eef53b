"""The module torch.opencl: devices, streams, random numbers and memory of OpenCL devices."""
import torch

from . import memory, random  # noqa: F401
from .memory import (  # noqa: F401
    empty_cache,
    host_memory_stats,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (  # noqa: F401
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)

_ops = torch.ops.opencl


def is_available():
    return device_count() > 0


def is_initialized():
    return not _is_in_bad_fork()


def init():
    """Devices are initialized when they are first used; this does nothing else."""


def _lazy_init():
    pass


def _is_in_bad_fork():
    return _ops.is_in_bad_fork()


def device_count():
    return _ops.device_count()


def current_device():
    return _ops.current_device()


def _index(device):
    """The index of a device, an index, or None for the current device."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "opencl":
        raise ValueError(f"expected an opencl device, not {device}")
    return current_device() if device.index is None else device.index


def set_device(device):
    index = _index(device)
    if index >= 0:
        _ops.set_device(index)


def get_device_name(device=None):
    return _ops.device_name(_index(device))


class DeviceProperties:
    """What torch.opencl.get_device_properties returns."""

    def __init__(self, index):
        self.name = _ops.device_name(index)
        numbers = _ops.device_properties(index)
        self.total_memory, self.multi_processor_count, self.max_work_group_size = numbers[:3]
        self.max_allocation, has_double, is_gpu = numbers[3:]
        self.has_fp64, self.is_gpu = bool(has_double), bool(is_gpu)

    def __repr__(self):
        return f"DeviceProperties({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def get_device_properties(device=None):
    return DeviceProperties(_index(device))


class device:
    """Context manager that changes the current device; a negative index or None changes nothing."""

    def __init__(self, device):
        self.index = -1 if device is None else _index(device)
        self.before = -1

    def __enter__(self):
        # Not torch._C._accelerator_maybeExchangeDevice: in PyTorch 2.11 it returns its argument.
        self.before = _ops.exchange_device(self.index)
        return self

    def __exit__(self, *_):
        _ops.exchange_device(self.before)
        return False


class Stream(torch.Stream):
    """A stream of an OpenCL device: a command queue in order."""

    def __new__(cls, device=None, priority=0, **given):
        if given:  # an existing stream, by its ids
            return super().__new__(cls, priority=priority, **given)
        return super().__new__(cls, device=torch.device("opencl", _index(device)), priority=priority)


class Event(torch.Event):
    """A point in a stream's work. Its time is known when it is complete."""

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
        return super().__new__(cls, device="opencl", enable_timing=enable_timing, blocking=blocking)


def current_stream(device=None):
    return torch.accelerator.current_stream(_index(device))


def set_stream(stream):
    torch.accelerator.set_stream(stream)


class stream:
    """Context manager that makes a stream the current one of its device."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.device = current_device()
            set_device(self.stream.device)
            self.before = current_stream()
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *_):
        if self.stream is not None:
            set_stream(self.before)
            set_device(self.device)
        return False


def synchronize(device=None):
    """Waits for all streams of a device."""
    torch.accelerator.synchronize(_index(device))


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]


def fallbacks():
    """Operators that ran on the CPU since the process began, with their counts."""
    names, counts = _ops.fallbacks()
    return dict(zip(names, counts))


def reset_fallbacks():
    _ops.reset_fallbacks()


def kernel_launches():
    """Kernels launched since the process began."""
    return _ops.launches()


def host_copies():
    """Copies between host and devices since the process began."""
    return _ops.host_copies()


def __getattr__(name):
    """Attributes that PyTorch expects of a device's module and whose values are computed when they are read."""
    if name == "_initialized":  # torch.utils.checkpoint keeps the states of the generators where this is true
        return is_initialized()
    # Inductor reads this attribute for its first graph; the package then registers with Inductor.
    if name == "Scheduling":
        from . import inductor  # noqa: F401
    raise AttributeError(f"module 'torch.opencl' has no attribute '{name}'")
