"""PyTorch on OpenCL devices: torch.device("opencl").

`import torch` loads this package by its entry point; `import torch_opencl` does the same where autoloading is off.
OpenCL is not started before a device is first used.
"""
import functools
import pathlib

import torch

from .built_with import TORCH_VERSION

_LIBRARY = pathlib.Path(__file__).parent / "libtorch_opencl.so"


def _check_version():
    """PyTorch's C++ interface changes with each minor version: loading would fail with names of symbols, or worse."""
    here = torch.__version__.partition("+")[0]
    if here.split(".")[:2] != TORCH_VERSION.split(".")[:2]:
        raise ImportError(f"torch_opencl was built for PyTorch {TORCH_VERSION}, and this is PyTorch {here}: install torch-opencl again "
                          "(pip install --force-reinstall --no-deps ./bindings/pytorch)")


def _register():
    if hasattr(torch, "opencl"):
        return
    _check_version()
    torch.ops.load_library(str(_LIBRARY))
    torch.utils.rename_privateuse1_backend("opencl")
    from . import encoder, opencl

    torch._register_device_module("opencl", opencl)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _name_device_for_dlpack()
    encoder.zero_what_is_padded()


def _name_device_for_dlpack():
    """torch.Tensor.__dlpack_device__ of PyTorch 2.11 compares with the name that the backend had before it was renamed, so that
    torch.from_dlpack would refuse its tensors."""
    original = torch.Tensor.__dlpack_device__

    @functools.wraps(original)
    def dlpack_device(self):
        if self.device.type != "opencl":
            return original(self)
        return torch.utils.dlpack.DLDeviceType.kDLExtDev, self.device.index

    torch.Tensor.__dlpack_device__ = dlpack_device


def _autoload():
    """Called by PyTorch for the entry point `torch.backends`."""
    _register()


_register()
