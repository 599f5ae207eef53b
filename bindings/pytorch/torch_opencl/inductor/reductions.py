"""The loops of a kernel that reduces (kernel.py explains their two forms). A long sum is computed as a sum of sums, which is more accurate (decision 296)."""
import itertools

import sympy
import torch
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.virtualized import V
from torch.utils._sympy.symbol import symbol_is_type, SymT
from torch.utils._sympy.value_ranges import ValueRanges

from . import types

# What an accumulator begins with, and what combines two of them.
_PLAIN = {
    "sum": (0, "({a} + {b})"),
    "prod": (1, "({a} * {b})"),
    "xor_sum": (0, "({a} ^ {b})"),
    "any": (False, "({a} || {b})"),
    "max": (None, "({a} > {b} || {a} != {a} ? {a} : {b})"),
    "min": (None, "({a} < {b} || {a} != {a} ? {a} : {b})"),
}

# Elements that an item adds before the sum is added to those of other parts.
_PART = 128


def _static(number):
    return isinstance(number, (int, sympy.Integer))


class ReductionsMixin:
    def start_reductions(self):
        self.group_size = 0  # 0: the form `rows`, or no reduction
        self.numbers = itertools.count()
        self.sums = []  # accumulators of floating-point sums in the next loops
        self.local_declarations = []
        self.loop_indices = IndentedBuffer()
        self.before_loop = IndentedBuffer()
        self.accumulate = IndentedBuffer()
        self.after_loop = IndentedBuffer()
        self.first_pass = IndentedBuffer()  # of variances: accumulates what the mean needs
        self.between_passes = IndentedBuffer()

    def _reduction_trees(self):
        return [tree for tree in self.range_trees if tree.is_reduction]

    def choose_form(self, indices):
        if not self.features.is_reduction():
            return
        device = torch.opencl.get_device_properties(V.graph.get_current_device_or_throw())
        results, elements = sympy.S.One, sympy.S.One
        for tree in self.range_trees:
            if tree.is_reduction:
                elements *= tree.numel
            else:
                results *= tree.numel
        hint = V.graph.sizevars.optimization_hint
        results, elements = hint(results, fallback=1024), hint(elements, fallback=1024)
        reduces_neighbours = keeps_neighbours = 0
        for index in indices:
            if any(symbol_is_type(symbol, (SymT.TMP, SymT.INDIRECT)) for symbol in index.free_symbols):
                continue
            strides = {str(symbol): stride for symbol, stride in self.get_strides_of_load(index).items()}
            inner = strides.get(self._reduction_trees()[-1].name, 0)
            outer = strides.get("xindex", 0)
            if inner != 0:
                reduces_neighbours += inner == 1
                keeps_neighbours += inner != 1 and outer == 1
        is_wide = results >= 64 and keeps_neighbours > reduces_neighbours
        is_short = elements < 16 and results >= 16
        if is_wide or is_short:
            return
        largest = min(256, device.max_work_group_size) if device.is_gpu else 16
        self.group_size = 1 << max(0, min(largest, elements).bit_length() - 1)
        self.body.writeline("const int lane = get_local_id(0);")

    # Accumulators

    def _variable(self, dtype, prefix):
        variable = self.create_cse_var(f"{prefix}{next(self.numbers)}", ValueRanges.unknown(), dtype, ())
        self.kept.add(variable)
        return variable

    def _accumulator(self, dtype, initial):
        variable = self._variable(dtype, "acc")
        self.before_loop.writeline(f"{types.compute_type(dtype)} {variable} = {initial};")
        return variable

    def _combine(self, buffer, variables, combine):
        """Makes all items of a group have the combination of their `variables`; `combine(mine, others)` returns statements."""
        size = self.group_size
        if size <= 1:
            return
        arrays = []
        for variable in variables:
            arrays.append(f"{variable}_shared")
            # Local memory of booleans is not portable.
            kind = "uchar" if variable.dtype == torch.bool else types.compute_type(variable.dtype)
            self.local_declarations.append(f"local {kind} {arrays[-1]}[{size}];")
        for variable, array in zip(variables, arrays):
            buffer.writeline(f"{array}[lane] = {variable};")
        barrier = "barrier(CLK_LOCAL_MEM_FENCE);"
        if size > 32:
            mine, others = [f"{array}[lane]" for array in arrays], [f"{array}[lane + half_size]" for array in arrays]
            buffer.writeline(f"for (int half_size = {size // 2}; half_size > 0; half_size /= 2) {{ {barrier} "
                             f"if (lane < half_size) {{ {combine(mine, others)} }} }}")
            buffer.writeline(barrier)
            for variable, array in zip(variables, arrays):
                buffer.writeline(f"{variable} = {array}[0];")
            return
        buffer.writeline(barrier)
        for variable, array in zip(variables, arrays):
            buffer.writeline(f"{variable} = {array}[0];")
        others = [f"{array}[other]" for array in arrays]
        buffer.writeline(f"for (int other = 1; other < {size}; ++other) {{ {combine([str(v) for v in variables], others)} }}")

    def reduction(self, dtype, src_dtype, reduction_type, value):
        key = (src_dtype, reduction_type, value)
        if key not in self.cse.reduction_cache:
            self.cse.reduction_cache[key] = self._reduce(dtype, src_dtype, reduction_type, value)
        return self.cse.reduction_cache[key]

    def _reduce(self, dtype, src_dtype, reduction_type, value):
        assert self.inside_reduction
        if reduction_type in ("argmax", "argmin"):
            return self._place_of_extreme(types.compute_dtype(src_dtype), reduction_type == "argmax", value)
        if reduction_type in ("welford_reduce", "welford_combine"):
            return self._moments(types.compute_dtype(dtype), value)
        if reduction_type not in _PLAIN:
            raise NotImplementedError(f"opencl: the reduction {reduction_type}")
        initial, formula = _PLAIN[reduction_type]
        kind = types.compute_dtype(src_dtype if reduction_type in ("max", "min") else dtype)
        start = types.limit(kind, reduction_type == "min") if initial is None else types.literal(initial, kind)
        total = self._accumulator(kind, start)
        if reduction_type == "sum" and kind.is_floating_point:
            self.sums.append(total)
        self.accumulate.writeline(f"{total} = {formula.format(a=total, b=value)};")
        self._combine(self.after_loop, [total],
                      lambda mine, others: f"{mine[0]} = {formula.format(a=mine[0], b=others[0])};")
        return total

    def _place_of_extreme(self, dtype, is_greatest, value):
        extreme = self._accumulator(dtype, types.limit(dtype, not is_greatest))
        place = self._accumulator(torch.int64, "LONG_MAX")
        sign = ">" if is_greatest else "<"

        def take(mine, others):
            a, i, b, j = *mine, *others  # the first of equal ones; NaN before all others
            is_better = f"{b} {sign} {a} || ({b} != {b} && {a} == {a})"
            is_equal = f"({b} == {a} || ({b} != {b} && {a} != {a})) && {j} < {i}"
            return f"if ({is_better} || ({is_equal})) {{ {a} = {b}; {i} = {j}; }}"

        self.accumulate.writeline(take([extreme, place], [value, self._reduced_index()]))
        self._combine(self.after_loop, [extreme, place], take)
        return place

    def _reduced_index(self):
        tree, *others = self._reduction_trees()
        assert not others, "one space of reduced indices"
        return tree.name

    def _moments(self, dtype, value):
        """Mean, sum of squared distances from it, and count: of elements, or of parts given by these three."""
        kind = types.compute_type(dtype)
        is_parts = isinstance(value, tuple)
        total = self._accumulator(dtype, types.literal(0, dtype))
        mean, count = self._variable(dtype, "mean"), self._variable(dtype, "count")
        squares = self._accumulator(dtype, types.literal(0, dtype))
        sums = [total]
        self.sums += [total, squares]
        if is_parts:
            weight = self._accumulator(dtype, types.literal(0, dtype))
            sums.append(weight)
            self.sums.append(weight)
            self.first_pass.writeline(f"{total} += {value[0]} * {value[2]}; {weight} += {value[2]};")
        else:
            self.first_pass.writeline(f"{total} += {value};")
        self._combine(self.between_passes, sums,
                      lambda mine, others: " ".join(f"{a} += {b};" for a, b in zip(mine, others)))
        size = str(sums[1]) if is_parts else f"({kind}){self._reduced_size()}"
        self.between_passes.writeline(f"const {kind} {count} = {size};")
        self.between_passes.writeline(f"const {kind} {mean} = {count} != 0 ? {total} / {count} : 0;")
        if is_parts:
            distance = f"({value[0]} - {mean})"
            self.accumulate.writeline(f"{squares} += {value[1]} + {value[2]} * {distance} * {distance};")
        else:
            self.accumulate.writeline(f"{squares} += ({value} - {mean}) * ({value} - {mean});")
        self._combine(self.after_loop, [squares], lambda mine, others: f"{mine[0]} += {others[0]};")
        return mean, squares, count

    def _reduced_size(self):
        sizes = [self.kexpr(tree.numel) if _static(tree.numel) else f"{tree.prefix}numel"
                 for tree in self._reduction_trees()]
        return "(" + " * ".join(sizes) + ")"

    # Loops

    def write_loops(self):
        """Writes what was collected since the last loop, and forgets it."""
        parts = (self.loads, self.compute, self.accumulate, self.first_pass, self.stores)
        self.body.splice(self.before_loop)
        if self.first_pass:
            self._write_loop(self.loads, self.compute, self.first_pass)
            self.body.splice(self.between_passes)
        if any(parts):
            self._write_loop(self.loads, self.compute, self.accumulate, self.stores)
        self.body.splice(self.after_loop)
        for buffer in (*parts, self.loop_indices, self.before_loop, self.between_passes, self.after_loop):
            buffer.clear()
        self.sums.clear()
        for tree in self._reduction_trees():
            tree.cache_clear()

    def _write_loop(self, *contents):
        kind = self.index_dtype
        closing, after = 0, ""
        for tree in self._reduction_trees():
            size = self.kexpr(tree.numel) if _static(tree.numel) else f"{tree.prefix}numel"
            is_last = tree is self._reduction_trees()[-1]
            step = max(self.group_size, 1) if is_last else 1
            begin, end = "0", size
            if is_last and self.sums and not (_static(tree.numel) and int(tree.numel) <= _PART * step):
                length = _PART * step
                self.body.writeline(f"for ({kind} part = 0; part < {size}; part += {length}) {{")
                self.body.writeline(f"const {kind} part_end = min(({kind})({size}), ({kind})(part + {length}));")
                for total in self.sums:
                    self.body.writeline(f"const {types.compute_type(total.dtype)} before_{total} = {total}; {total} = 0;")
                    after += f" {total} += before_{total};"
                after += " }"
                begin, end = "part", "part_end"
            if step > 1:
                self.body.writeline(f"for ({kind} first = {begin}; first < {end}; first += {step}) {{")
                self.body.writeline(f"const {kind} {tree.name} = first + lane;")
                if not (_static(tree.numel) and int(tree.numel) % step == 0):
                    self.body.writeline(f"if ({tree.name} < {size}) {{")
                    closing += 1
            else:
                self.body.writeline(f"for ({kind} {tree.name} = {begin}; {tree.name} < {end}; ++{tree.name}) {{")
            closing += 1
        with self.body.indent():
            self.body.splice(self.loop_indices)
            for buffer in contents:
                self.body.splice(buffer)
        # The loop of parts is within those of other dimensions.
        outer = len(self._reduction_trees()) - 1 if after else 0
        self.body.writeline("}" * (closing - outer) + after + "}" * outer)
