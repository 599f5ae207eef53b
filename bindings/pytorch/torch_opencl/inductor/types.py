"""PyTorch's element types in OpenCL C. float16 and bfloat16 are stored as such and computed in float."""
import math

import torch

_STORAGE = {
    torch.bool: "uchar",
    torch.uint8: "uchar",
    torch.int8: "char",
    torch.uint16: "ushort",
    torch.int16: "short",
    torch.uint32: "uint",
    torch.int32: "int",
    torch.uint64: "ulong",
    torch.int64: "long",
    torch.float16: "half",
    torch.bfloat16: "ushort",
    torch.float32: "float",
    torch.float64: "double",
}
_COMPUTE = {**_STORAGE, torch.bool: "bool", torch.float16: "float", torch.bfloat16: "float"}
_SUFFIXES = {torch.float32: "f", torch.float16: "f", torch.bfloat16: "f", torch.int64: "L", torch.uint32: "u", torch.uint64: "UL"}


def _look_up(table, dtype):
    if dtype not in table:
        raise NotImplementedError(f"torch.compile for OpenCL devices has no elements of type {dtype}")
    return table[dtype]


def storage_type(dtype):
    """The type of an element in memory."""
    return _look_up(_STORAGE, dtype)


def compute_type(dtype):
    """The type of a variable that holds an element."""
    return _look_up(_COMPUTE, dtype)


def compute_dtype(dtype):
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def literal(value, dtype):
    """A number as a constant of the compute type."""
    if dtype == torch.bool:
        return "true" if value else "false"
    suffix = _SUFFIXES.get(dtype, "")
    if dtype.is_floating_point:
        value = float(value)
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "INFINITY" if value > 0 else "(-INFINITY)"
        return f"{value!r}{suffix}" if value >= 0 else f"({value!r}{suffix})"
    value = int(value)
    if value == -(1 << 63):
        return "LONG_MIN"
    return f"{value}{suffix}" if value >= 0 else f"({value}{suffix})"


def limit(dtype, greatest):
    """The greatest or the least value of a type, as an expression."""
    if dtype == torch.bool:
        return "true" if greatest else "false"
    if dtype.is_floating_point:
        return "INFINITY" if greatest else "(-INFINITY)"
    info = torch.iinfo(dtype)
    return literal(info.max if greatest else info.min, dtype)


def load(dtype, pointer, index):
    """An element in memory as an expression of the compute type."""
    if dtype == torch.bool:
        return f"({pointer}[{index}] != 0)"
    if dtype == torch.float16:
        return f"vload_half({index}, {pointer})"
    if dtype == torch.bfloat16:
        return f"t_bfloat16_value({pointer}[{index}])"
    return f"{pointer}[{index}]"


def parameter_type(dtype):
    """The type of a kernel's parameter that is an element itself. A parameter of type half needs an extension, so float16 are passed as bits."""
    return "ushort" if dtype == torch.float16 else storage_type(dtype)


def value(dtype, parameter):
    """Such a parameter as an expression of the compute type."""
    if dtype == torch.bool:
        return f"({parameter} != 0)"
    halves = {torch.float16: "t_half_value", torch.bfloat16: "t_bfloat16_value"}
    return f"{halves[dtype]}({parameter})" if dtype in halves else parameter


def store(dtype, pointer, index, value):
    """The statement that stores a value of any arithmetic type."""
    if dtype == torch.bool:
        return f"{pointer}[{index}] = ({value} != 0);"
    if dtype == torch.float16:
        return f"vstore_half({value}, {index}, {pointer});"
    if dtype == torch.bfloat16:
        return f"{pointer}[{index}] = t_bfloat16_bits({value});"
    return f"{pointer}[{index}] = {value};"
