"""PyTorch on OpenCL devices: torch.device("opencl").

`import torch` loads this package by its entry point; `import torch_opencl` does the same where autoloading is off.
Nothing of OpenCL is started before a device is first used.
"""
import pathlib

import torch

_LIBRARY = pathlib.Path(__file__).parent / "libtorch_opencl.so"


def _register():
    if hasattr(torch, "opencl"):
        return
    torch.ops.load_library(str(_LIBRARY))
    torch.utils.rename_privateuse1_backend("opencl")
    from . import opencl

    torch._register_device_module("opencl", opencl)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


def _autoload():
    """Called by PyTorch for the entry point `torch.backends`."""
    _register()


_register()
