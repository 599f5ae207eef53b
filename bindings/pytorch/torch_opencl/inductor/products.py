"""Products of matrices in the code that Inductor writes. A call of torch.mm costs PyTorch's parser of arguments and its dispatcher, and one more
tensor for each factor that is a view. Here a product is an object that was made once, and that is called with the tensors whose memory has the
matrices: their sizes, strides and offsets are constants.
"""
import dataclasses

import sympy
import torch
from torch._inductor import ir
from torch._inductor.codegen.wrapper import ExternKernelOutLine
from torch._inductor.virtualized import V

# Kernels of Inductor, and whether their first input is added to the product.
_KERNELS = {"extern_kernels.mm": False, "extern_kernels.bmm": False, "extern_kernels.addmm": True, "extern_kernels.baddbmm": True}
_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def _integers(values):
    """The values as integers, or None where one varies."""
    if not all(isinstance(value, (int, sympy.Integer)) for value in values):
        return None
    return tuple(int(value) for value in values)


def _matrix(node):
    """(sizes, strides, offset) of a matrix within the tensor whose name the code has, or None where they are not constant."""
    if not isinstance(node, (ir.Buffer, ir.ReinterpretView)) or V.graph.get_dtype(node.get_name()) != node.get_dtype():
        return None
    layout = node.get_layout()
    is_whole = node.codegen_reference() == node.get_name()
    numbers = [_integers(part) for part in (layout.size, layout.stride, (0 if is_whole else layout.offset,))]
    return None if None in numbers else (*numbers[:2], numbers[2][0])


def product_of(node):
    """The text that makes the object of a node's product, and the nodes that are its arguments; or None."""
    name = node.get_kernel_name()
    factors = [node, *node.inputs]
    if name not in _KERNELS or node.output_view is not None or len(factors) != 3 + _KERNELS[name]:
        return None
    if node.get_dtype() not in _TYPES or any(factor.get_dtype() != node.get_dtype() for factor in factors):
        return None
    alpha, beta = (node.kwargs.get(which, 1) for which in ("alpha", "beta"))
    if node.constant_args or not all(isinstance(number, (int, float)) for number in (alpha, beta)):
        return None
    out, *added, a, b = factors
    arguments = [out, a, b, *added]
    matrices = [_matrix(argument) for argument in arguments]
    if None in matrices:
        return None
    return f"opencl_product({', '.join(map(repr, matrices))}, alpha={alpha!r}, beta={beta!r})", arguments


@dataclasses.dataclass
class ProductLine(ExternKernelOutLine):
    """The call. Its text is written last, when buffers have the names under which their memory is shared."""

    product: str
    arguments: list

    def codegen(self, code):
        self.wrapper.writeline(f"{self.product}({', '.join(argument.get_name() for argument in self.arguments)})")
