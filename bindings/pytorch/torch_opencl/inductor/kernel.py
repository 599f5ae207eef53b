"""One kernel of Inductor's schedule as OpenCL C.

A pointwise kernel has a work-item per element. A reduction has a loop over the reduced elements, and one of two forms:
- `rows`: a work-item per result walks over its elements. Good where neighbouring results are neighbours in memory.
- `groups`: a work-group per result, whose items walk with the group's stride and then combine what they have. Good where the reduced
  elements are neighbours. All items compute what follows the loop; the first one stores it.
A value that is needed after the loop and again per element starts another loop in the same kernel. Variances take two loops, the
first one for the mean: this is as accurate as Welford's method, without a division per element.
"""
import json

import sympy
import torch
from torch._inductor.codegen.common import CSE, DeferredLine, IndentedBuffer, SizeArg, TensorArg
from torch._inductor.codegen.simd import SIMDKernel
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet
from torch.utils._sympy.value_ranges import ValueRanges

from . import types
from .functions import functions_for
from .host_scalars import HostScalars, is_on_host
from .indices import IndexPrinter
from .operations import Operations
from .reductions import ReductionsMixin


class TypedVariables(CSE):
    """Writes the type of a variable before its name."""

    def generate(self, buffer, expr, *, dtype=None, **options):
        if dtype is not None and not isinstance(dtype, (list, tuple)):
            self.prefix = f"const {types.compute_type(types.compute_dtype(dtype))} "
        variable = super().generate(buffer, expr, dtype=dtype, **options)
        V.kernel.note_variable(variable)
        return variable


class OpenCLKernel(ReductionsMixin, SIMDKernel):
    overrides = Operations
    suffix = ";"
    kexpr = IndexPrinter().doprint
    sexpr = kexpr

    def __init__(self, tiling, **options):
        super().__init__(tiling, **options)
        self.cse = TypedVariables("", self.suffix)
        self.kept = OrderedSet()  # variables that are declared outside of loops
        self.host_scalars = HostScalars()
        self.outer_entries = []  # indices of results, in the order of their first use
        self.start_reductions()

    def dtype_to_str(self, dtype):
        return types.compute_type(dtype)

    def note_variable(self, variable):
        if not self.inside_reduction:
            self.kept.add(variable)

    def finalize_indexing(self, indices):
        self.choose_form(indices)

    def codegen_iteration_ranges_entry(self, entry):
        if entry.is_reduction:
            text = self.kexpr(self.rename_indexing(entry.expr))
            self.loop_indices.writeline(f"const {self.index_dtype} {entry.name} = {text};")
        else:
            self.outer_entries.append(entry)

    def load(self, name, index):
        dtype = V.graph.get_dtype(name)
        if is_on_host(name):
            text = self.host_scalars.load(name, index)
        else:
            text = types.load(dtype, self.args.input(name), self.index_to_str(self.prepare_indexing(index)))
        return self.cse.generate(self.loads, text, dtype=types.compute_dtype(dtype), shape=())

    def store(self, name, index, value, mode=None):
        self._store(self.stores, name, index, value, mode)

    def store_reduction(self, name, index, value):
        self._store(self.after_loop, name, index, value, None, is_result=True)

    def _store(self, buffer, name, index, value, mode, is_result=False):
        if is_on_host(name):
            raise NotImplementedError(f"opencl: a kernel cannot write {name}, which is on the CPU")
        pointer = self.args.output(name)
        dtype = V.graph.get_dtype(name)
        place = self.index_to_str(self.prepare_indexing(index))
        if mode is None:
            line = types.store(dtype, pointer, place, value)
        elif mode == "atomic_add":
            adders = {torch.float32: "t_add_float", torch.int32: "t_add_int", torch.float16: "t_add_half"}
            if dtype not in adders:
                raise NotImplementedError(f"opencl: no atomic addition of {dtype} in compiled code")
            line = f"{adders[dtype]}({pointer} + {place}, {value});"
        else:
            raise NotImplementedError(f"opencl: the store mode {mode}")
        if self.group_size and (is_result or not self.inside_reduction):
            line = f"if (lane == 0) {line}"
        buffer.writeline(DeferredLine(name, line))

    def masked(self, mask, body, other):
        """`body` is evaluated under a condition, because its loads may be outside of the tensor elsewhere."""
        inner = IndentedBuffer()
        with self.swap_buffers(inner):
            value = body()
        dtype = types.compute_dtype(value.dtype)
        result = self.cse.newvar(ValueRanges.unknown(), dtype, ())
        self.note_variable(result)
        other = other if hasattr(other, "dtype") else types.literal(other, dtype)
        self.compute.writeline(f"{types.compute_type(dtype)} {result} = {other};")
        self.compute.writeline(f"if ({mask}) {{")
        with self.compute.indent():
            self.compute.splice(inner)
            self.compute.writeline(f"{result} = {value};")
        self.compute.writeline("}")
        return result

    def check_bounds(self, expr, size, lower, upper):
        """Indices from tensors are clamped where they are made (Operations.indirect_indexing)."""

    def device_assert_async(self, cond, msg):
        """The kernel prints what does not hold: to raise an error, the call would have to wait for it. PyTorch 2.15 asks for this."""
        text = json.dumps(msg).replace("\\", "\\\\")  # the source becomes a Python text
        self.compute.writeline(f'if (!{cond}) printf("opencl: %s%c", {text}, 10);')

    def codegen_body(self):
        if self.inside_reduction:
            self.write_loops()
            self.cse.invalidate(self.kept)
        else:
            self.body.splice(self.loads)
            self.body.splice(self.compute)
            if self.stores and self.group_size and self.args.inplace_buffers:
                self.body.writeline("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")
            self.body.splice(self.stores)
            self.loads.clear()
            self.compute.clear()
            self.stores.clear()

    # The launch

    def _outer_trees(self):
        """Index spaces of results, innermost first."""
        return [tree for tree in reversed(self.range_trees) if not tree.is_reduction]

    def _split(self, tree):
        """A size that splits an index space in two dimensions of the launch, so that its indices need no division, or None."""
        if not isinstance(tree.numel, (int, sympy.Integer)):
            return None
        entries = [entry for entry in self.outer_entries if entry.root is tree]
        for divisor in sorted({int(entry.divisor) for entry in entries
                               if isinstance(entry.divisor, (int, sympy.Integer))}):
            if divisor >= 16 and int(tree.numel) % divisor == 0 and divisor < int(tree.numel):
                return divisor
        return None

    def _dimensions(self):
        """The launch's global sizes as sympy expressions, and the lines that declare the index of each space."""
        index_type = self.index_dtype
        sizes, lines = [], []
        if self.group_size:
            sizes.append(sympy.Integer(self.group_size))
        trees = self._outer_trees()
        self.splits = {}
        for tree in trees:
            divisor = None if self.group_size or len(trees) + len(self.splits) > 2 else self._split(tree)
            dimension = len(sizes)
            if divisor is None:
                sizes.append(tree.numel)
                if self.group_size and dimension > 2:
                    raise NotImplementedError("opencl: a reduction over a tile of three dimensions")
                lines.append(f"const {index_type} {tree.name} = get_global_id({dimension});")
                continue
            self.splits[tree.name] = divisor
            sizes += [sympy.Integer(divisor), tree.numel / divisor]
            low, high = f"{tree.name}_low", f"{tree.name}_high"
            lines += [f"const {index_type} {low} = get_global_id({dimension});",
                      f"const {index_type} {high} = get_global_id({dimension + 1});",
                      f"const {index_type} {tree.name} = {high} * {divisor} + {low};"]
        for entry in self.outer_entries:
            lines.append(f"const {index_type} {entry.name} = {self._entry(entry)};")
        return sizes, lines

    def _entry(self, entry):
        divisor = self.splits.get(entry.root.name)
        plain = self.kexpr(self.rename_indexing(entry.expr))
        if divisor is None or not all(isinstance(n, (int, sympy.Integer)) for n in (entry.divisor, entry.length)):
            return plain
        first, length = int(entry.divisor), int(entry.length)
        if first * length <= divisor and divisor % (first * length) == 0:
            text = f"{entry.root.name}_low" + (f" / {first}" if first > 1 else "")
            return text + (f" % {length}" if first * length < divisor else "")
        if first % divisor == 0:
            text = f"{entry.root.name}_high" + (f" / {first // divisor}" if first > divisor else "")
            return text + (f" % {length}" if first * length < int(entry.root.numel) else "")
        return plain

    def _size_parameters(self):
        """Sizes of index spaces that are not constants: they are the last parameters."""
        return [tree for tree in self.range_trees
                if tree.is_reduction and not isinstance(tree.numel, (int, sympy.Integer))]

    def codegen_kernel(self, name=None):
        self.codegen_body()
        sizes, lines = self._dimensions()  # may need sizes that are arguments
        names, _, arguments, _ = self.args.python_argdefs()
        parameters = []
        values = 0
        for argument_name, argument in zip(names, arguments):
            if isinstance(argument, SizeArg):
                values += 1
                parameters.append(f"const long {argument.name}")
            else:
                parameters.append(f"global {types.storage_type(argument.dtype)}* {argument.name}")
        addresses = len(parameters) - values
        parameters[addresses:addresses] = self.host_scalars.parameters()
        for tree in self._size_parameters():
            values += 1
            parameters.append(f"const long {tree.prefix}numel")
        body = IndentedBuffer()
        body.splice("\n".join(lines))
        body.splice(self.body)
        text = body.getvalue()
        attribute = f"__attribute__((reqd_work_group_size({self.group_size}, 1, 1))) " if self.group_size else ""
        indented = "".join(f"  {line}\n" for line in (*self.local_declarations, *text.splitlines()) if line.strip())
        source = (f"{functions_for(text)}kernel {attribute}void generated({', '.join(parameters)}) {{\n{indented}}}\n")
        self.global_sizes = sizes
        is_static = all(size.is_number for size in sizes)
        code = IndentedBuffer()
        code.writeline("opencl_kernel('''")
        code.splice(source)
        sizes_text = tuple(int(size) for size in sizes) if is_static else None
        code.writeline(f"''', addresses={addresses}, values={values}, group_size={self.group_size}, sizes={sizes_text}, "
                       f"scalars={len(self.host_scalars)})")
        return code.getvalue()

    def call_kernel(self, name, node=None, deallocate_ws=True):
        wrapper = V.graph.wrapper_code
        _, call_arguments, kinds, _ = self.args.python_argdefs()
        arguments = [str(argument) for argument in call_arguments]
        addresses = sum(isinstance(argument, TensorArg) for argument in kinds)
        arguments[addresses:addresses] = self.host_scalars.arguments()
        for tree in self._size_parameters():
            arguments.append(wrapper.codegen_python_sizevar(tree.numel))
        if not all(size.is_number for size in self.global_sizes):
            sizes = ", ".join(wrapper.codegen_python_sizevar(size) for size in self.global_sizes)
            arguments.append(f"({sizes},)")
        wrapper.generate_kernel_call(name, arguments, triton=False, device=V.graph.get_current_device_or_throw())
