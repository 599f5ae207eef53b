"""Generated kernels as Python objects that are called with tensors. The modules that Inductor writes import this file."""
import ctypes
import pathlib
import struct

import torch

_library = ctypes.CDLL(str(pathlib.Path(__file__).parents[1] / "libtorch_opencl.so"))
_make = _library.torch_opencl_generated_kernel
_make.argtypes, _make.restype = [ctypes.c_char_p], ctypes.c_void_p
_launch = _library.torch_opencl_launch
_launch.argtypes, _launch.restype = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_char_p], ctypes.c_int
_message = _library.torch_opencl_message
_message.argtypes, _message.restype = [], ctypes.c_char_p
_OUT_OF_MEMORY = 2


def _fail(code):
    text = _message().decode(errors="replace")
    raise (torch.OutOfMemoryError if code == _OUT_OF_MEMORY else RuntimeError)(text)


def opencl_kernel(source, addresses, values, group_size, sizes):
    """A function of `addresses` tensors, then `values` integers. `sizes` are the launch's global sizes: constants, or None where the
    call gives them. It launches on the current device and stream, without waiting."""
    handle = _make(source.encode())
    pack = struct.Struct(f"{6 + addresses + values}q").pack
    group = (group_size, 1, 1) if group_size else (0, 0, 0)

    def padded(given):
        return (*given, *(1,) * (3 - len(given)), *group)

    constant = None if sizes is None else padded(sizes)

    def launch(*arguments, sizes=None):
        numbers = pack(*(constant if sizes is None else padded(sizes)),
                       *[tensor.data_ptr() for tensor in arguments[:addresses]], *arguments[addresses:])
        code = _launch(handle, addresses, values, numbers)
        if code:
            _fail(code)

    return launch
