"""Inductor's operations on elements as expressions in OpenCL C. Their arguments are variables of the kernel, or numbers."""
import torch
from torch._inductor.codegen.common import OpOverrides, pointwise_overrides_data
from torch._inductor.utils import get_bounds_index_expr
from torch._inductor.virtualized import V
from torch.utils._sympy.value_ranges import ValueRanges

from .indices import WideIndexPrinter
from .types import compute_dtype, compute_type, literal

_WIDE = WideIndexPrinter().doprint


def _is_float(value):
    dtype = getattr(value, "dtype", None)
    return isinstance(value, float) if dtype is None else dtype.is_floating_point


def _fits_in_32_bits(bounds):
    return bounds.lower >= -(1 << 31) and bounds.upper < 1 << 31


def _number(bounds, index, dtype):
    """Indices may have 32 bits, but a number that the program computes from one may need more."""
    text = V.kernel.index_to_str(index) if _fits_in_32_bits(bounds) else _WIDE(V.kernel.rename_indexing(index))
    return f"({compute_type(dtype)})({text})"


def _one(x):
    return "1.0" if getattr(x, "dtype", None) == torch.float64 else "1.0f"


class Operations(OpOverrides):
    @staticmethod
    def constant(value, dtype):
        return literal(value, compute_dtype(dtype))

    @staticmethod
    def to_dtype(x, dtype, src_dtype=None, use_compute_types=True):
        if dtype == torch.bool:
            return f"({x} != 0)"
        if not use_compute_types and dtype == torch.float16:
            return f"t_half_value(t_half_bits({x}))"
        if not use_compute_types and dtype == torch.bfloat16:
            return f"t_bfloat16_value(t_bfloat16_bits({x}))"
        if dtype == torch.uint8 and _is_float(x):
            return f"(uchar)(long){x}"  # negative numbers too are reduced modulo 256
        return f"({compute_type(dtype)}){x}"

    @staticmethod
    def to_dtype_bitcast(x, dtype, src_dtype):
        halves = {torch.float16: "half", torch.bfloat16: "bfloat16"}
        bits = f"t_{halves[src_dtype]}_bits({x})" if src_dtype in halves else f"{x}"
        if dtype in halves:
            return f"t_{halves[dtype]}_value(as_ushort({bits}))"
        return f"as_{compute_type(dtype)}({bits})"

    @staticmethod
    def index_expr(expr, dtype):
        bounds, index = get_bounds_index_expr(expr), V.kernel.prepare_indexing(expr)
        if dtype not in (torch.int32, torch.int64):
            return _number(bounds, index, dtype)
        is_wide = dtype == torch.int64 and not _fits_in_32_bits(bounds)
        text = _number(bounds, index, dtype) if is_wide else V.kernel.index_to_str(index)
        kind = torch.int64 if is_wide else V.kernel.get_index_dtype_as_torch_dtype()
        return V.kernel.cse.generate(V.kernel.compute, text, bounds=bounds, dtype=kind, shape=())

    @staticmethod
    def value_expr(expr, dtype):
        """A number of the type that the program asked for. PyTorch 2.15 tells these from indices, 2.11 does not."""
        return _number(get_bounds_index_expr(expr), V.kernel.prepare_indexing(expr), dtype)

    def indirect_indexing(self, var, size, check=True, wrap_neg=True):
        """An index outside of the tensor becomes one inside of it: reporting it would cost a wait for the device."""
        if check and not (var.bounds.lower >= 0 and size.is_number and var.bounds.upper < size):
            last = V.kernel.index_to_str(V.kernel.prepare_indexing(size - 1))
            var = V.kernel.cse.generate(V.kernel.compute, f"clamp((long){var}, 0L, (long)({last}))", dtype=torch.int64,
                                        bounds=ValueRanges(0, size - 1) if size.is_number else ValueRanges.unknown(),
                                        shape=())
        return super().indirect_indexing(var, size, check, wrap_neg)

    @staticmethod
    def masked(mask, body, other):
        return V.kernel.masked(mask, body, other)

    @staticmethod
    def where(condition, a, b):
        return f"({condition} ? {a} : {b})"

    @staticmethod
    def abs(x):
        return f"fabs({x})" if _is_float(x) else f"({x} < 0 ? -{x} : {x})"

    @staticmethod
    def neg(x):
        return f"-{x}"

    @staticmethod
    def sign(x):
        return f"(({x} > 0) - ({x} < 0))"

    @staticmethod
    def square(x):
        return f"{x} * {x}"

    @staticmethod
    def reciprocal(x):
        return f"{_one(x)} / {x}"

    @staticmethod
    def sigmoid(x):
        return f"{_one(x)} / ({_one(x)} + exp(-{x}))"

    @staticmethod
    def relu(x):
        return f"({x} < 0 ? 0 : {x})"

    @staticmethod
    def maximum(a, b):
        return f"({a} > {b} || {a} != {a} ? {a} : {b})"

    @staticmethod
    def minimum(a, b):
        return f"({a} < {b} || {a} != {a} ? {a} : {b})"

    @staticmethod
    def truediv(a, b):
        return f"{a} / {b}"

    @staticmethod
    def div_rn(a, b):
        """PyTorch 2.15's division in floor_divide and remainder. OpenCL's own is rounded to nearest where its options do not say otherwise."""
        return f"{a} / {b}"

    @staticmethod
    def fmaximum(a, b):
        return f"fmax({a}, {b})"

    @staticmethod
    def int_truediv(a, b):
        return f"(float){a} / (float){b}"

    @staticmethod
    def truncdiv(a, b):
        return f"trunc({a} / {b})" if _is_float(a) or _is_float(b) else f"{a} / {b}"

    @staticmethod
    def floordiv(a, b):
        return f"floor({a} / {b})" if _is_float(a) or _is_float(b) else f"t_floor_div({a}, {b})"

    @staticmethod
    def mod(a, b):
        return f"fmod({a}, {b})" if _is_float(a) or _is_float(b) else f"{a} % {b}"

    fmod = mod

    @staticmethod
    def remainder(a, b):
        if not (_is_float(a) or _is_float(b)):
            return f"t_floor_mod({a}, {b})"
        m = f"fmod({a}, {b})"
        return f"({m} != 0 && ({m} < 0) != ({b} < 0) ? {m} + {b} : {m})"

    @staticmethod
    def pow(a, b):
        return f"pow({a}, {b})" if _is_float(a) or _is_float(b) else f"t_pow_long({a}, {b})"

    @staticmethod
    def logical_and(a, b):
        return f"({a} != 0 && {b} != 0)"

    @staticmethod
    def logical_or(a, b):
        return f"({a} != 0 || {b} != 0)"

    @staticmethod
    def logical_xor(a, b):
        return f"(({a} != 0) != ({b} != 0))"

    @staticmethod
    def logical_not(a):
        return f"({a} == 0)"

    @staticmethod
    def bitwise_not(x):
        return f"!{x}" if getattr(x, "dtype", None) == torch.bool else f"~{x}"

    @staticmethod
    def isnan(x):
        return f"({x} != {x})"

    @staticmethod
    def isinf(x):
        return f"(isinf({x}) != 0)"

    @staticmethod
    def signbit(x):
        return f"(signbit({x}) != 0)" if _is_float(x) else f"({x} < 0)"

    @staticmethod
    def round(x):
        return f"rint({x})"

    @staticmethod
    def rand(seed, offset):
        return f"t_rand({seed}, {offset})"

    @staticmethod
    def randn(seed, offset):
        return f"t_randn({seed}, {offset})"

    @staticmethod
    def randint64(seed, offset, low, high):
        return f"t_randint({seed}, {offset}, {low}, {high})"

    @staticmethod
    def frexp(x):
        cse, compute = V.kernel.cse, V.kernel.compute
        if (made := cse.try_get(f"frexp({x})")) is None:
            mantissa, exponent = (cse.newvar(ValueRanges.unknown(), dtype, ()) for dtype in (x.dtype, torch.int32))
            compute.writeline(f"int {exponent};")
            compute.writeline(f"const {compute_type(x.dtype)} {mantissa} = frexp({x}, &{exponent});")
            made = (mantissa, exponent)
            cse.put(f"frexp({x})", made)
        return made

    @staticmethod
    def erf(x):
        return f"erf({x})" if x.dtype == torch.float64 else f"t_erf({x})"

    @staticmethod
    def erfinv(x):
        return f"t_erfinv((float){x})"


def _function(name):
    def call(*arguments):
        return f"{name}({', '.join(map(str, arguments))})"

    call.__name__ = name
    return staticmethod(call)


# The same names, arguments and results as OpenCL C's functions.
for _name in ("exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
              "erfc lgamma floor ceil trunc atan2 copysign hypot nextafter ldexp fma").split():
    setattr(Operations, _name, _function(_name))
for _name in pointwise_overrides_data:
    if Operations._is_unimplemented(_name):
        setattr(Operations, _name, Operations._unimplemented(_name))
