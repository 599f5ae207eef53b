"""torch.compile for OpenCL devices: a generator of OpenCL C for Inductor. Pointwise operations and reductions are fused into generated
kernels; products of matrices, convolutions, attention and other operators that Inductor does not lower are the package's operators.

Importing this module registers it. Inductor does so when it is first used (torch_opencl/opencl.py), so that `import torch` does not
load the compiler.
"""
import hashlib
import pathlib

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device
from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    get_device_op_overrides,
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass

from .. import opencl
from . import choices
from .scheduling import OpenCLScheduling, OpenCLWrapper


class OpenCLInterface(DeviceInterface):
    device = opencl.device
    Event = opencl.Event
    Stream = opencl.Stream

    class Worker:
        set_device = staticmethod(opencl.set_device)
        current_device = staticmethod(opencl.current_device)
        get_device_properties = staticmethod(opencl.get_device_properties)

    current_device = staticmethod(opencl.current_device)
    set_device = staticmethod(opencl.set_device)
    device_count = staticmethod(opencl.device_count)
    is_available = staticmethod(opencl.is_available)
    stream = staticmethod(opencl.stream)
    current_stream = staticmethod(opencl.current_stream)
    set_stream = staticmethod(opencl.set_stream)
    synchronize = staticmethod(opencl.synchronize)
    memory_allocated = staticmethod(opencl.memory_allocated)
    exchange_device = staticmethod(torch.ops.opencl.exchange_device)
    maybe_exchange_device = staticmethod(torch.ops.opencl.exchange_device)

    @staticmethod
    def get_raw_stream(device_idx):
        return 0

    @staticmethod
    def get_compute_capability(device=None):
        return 0

    @staticmethod
    def is_bf16_supported(including_emulation=False):
        return True


class OpenCLDeviceOps(DeviceOpOverrides):
    """Lines of the Python code that Inductor writes."""

    def import_get_raw_stream_as(self, name):
        return f"def {name}(_):\n    return 0"

    def set_device(self, device_idx):
        return f"torch.opencl.set_device({device_idx})"

    def synchronize(self):
        return "torch.opencl.synchronize()"

    def device_guard(self, device_idx):
        return f"torch.opencl.device({device_idx})"


class _Version(CustomGraphModulePass):
    """Changes no graph. Its identifier is part of the key of Inductor's caches, so that code of another version of this package, or for
    other devices, is not used."""

    def __call__(self, graph):
        pass

    def uuid(self):
        digest = hashlib.sha256()
        for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
            digest.update(path.read_bytes())
        for index in range(opencl.device_count()):
            digest.update(repr(opencl.get_device_properties(index)).encode())
        return digest.hexdigest()


def _register():
    get_device_op_overrides("cpu")  # first, those of PyTorch's own devices: they are loaded only into an empty table
    register_device_op_overrides("opencl", OpenCLDeviceOps())
    register_interface_for_device("opencl", OpenCLInterface)
    for index in range(opencl.device_count()):
        register_interface_for_device(f"opencl:{index}", OpenCLInterface)
    register_backend_for_device("opencl", OpenCLScheduling, OpenCLWrapper, device_custom_pass=_Version())
    choices.make()


_register()
