"""Numbers in host memory that a kernel of a device uses.

PyTorch's operators accept a CPU tensor without dimensions beside tensors of a device, and the result is on the device. Inductor gives kernels such
tensors too: the step of a compiled Adam, or a float that varies. Kernels cannot read host memory, so the number is an argument, copied when the
kernel is launched. Code on the CPU that changes the tensor has run then, or runs later, so the order is that of eager mode.
"""
import sympy
from torch._inductor.ir import get_device_type
from torch._inductor.virtualized import V
from torch.utils._sympy.symbol import symbol_is_type, SymT

from . import types

_SIZES = (SymT.SIZE, SymT.PRECOMPUTED_SIZE, SymT.UNBACKED_INT)


def is_on_host(name):
    return get_device_type(V.graph.get_buffer(name)) == "cpu"


class HostScalars:
    """Those of one kernel."""

    def __init__(self):
        self._parameters = {}  # by buffer and index: name and type

    def load(self, name, index):
        """The number as an expression of the compute type."""
        index = sympy.sympify(index)
        if not all(symbol_is_type(symbol, _SIZES) for symbol in index.free_symbols):
            raise NotImplementedError(f"opencl: a kernel cannot read the elements of {name}, which is on the CPU")
        dtype = V.graph.get_dtype(name)
        name = V.graph.scheduler.mutation_real_name.get(name, name)
        parameter, _ = self._parameters.setdefault((name, index), (f"scalar{len(self._parameters)}", dtype))
        return types.value(dtype, parameter)

    def parameters(self):
        return [f"const {types.parameter_type(dtype)} {parameter}" for parameter, dtype in self._parameters.values()]

    def arguments(self):
        """What the code on the host passes: tensors of one element."""
        return [self._element(name, index) for name, index in self._parameters]

    def __len__(self):
        return len(self._parameters)

    @staticmethod
    def _element(name, index):
        if index == 0 and not V.graph.get_buffer(name).get_size():
            return name
        return f"{name}.as_strided((), (), {name}.storage_offset() + {V.graph.wrapper_code.codegen_python_sizevar(index)})"
