"""Index expressions of Inductor (sympy) in OpenCL C. Indices are never negative unless sympy cannot know it."""
from sympy.printing.precedence import PRECEDENCE
from torch.utils._sympy.printers import ExprPrinter


class IndexPrinter(ExprPrinter):
    def _operands(self, expr):
        return [self.parenthesize(argument, PRECEDENCE["Atom"] - 0.5) for argument in expr.args]

    def _print_FloorDiv(self, expr):
        a, b = self._operands(expr)
        if not expr.is_integer:
            return f"floor((float){a} / {b})"
        return f"({a} / {b})" if expr.args[0].is_nonnegative else f"t_floor_div({a}, {b})"

    def _print_ModularIndexing(self, expr):
        x, divisor, size = expr.args
        a, b, c = self._operands(expr)
        if not x.is_nonnegative:
            return f"t_floor_mod(t_floor_div({a}, {b}), {c})"
        return f"({a} % {c})" if divisor == 1 else f"({a} / {b} % {c})"

    def _print_PythonMod(self, expr):
        a, b = self._operands(expr)
        return f"({a} % {b})" if expr.args[0].is_nonnegative else f"t_floor_mod({a}, {b})"

    def _print_Min(self, expr):
        return self._fold("min", expr)

    def _print_Max(self, expr):
        return self._fold("max", expr)

    def _fold(self, function, expr):
        kind = "long" if expr.is_integer else "float"
        first, *rest = (f"({kind})({self._print(argument)})" for argument in expr.args)
        for argument in rest:
            first = f"{function}({first}, {argument})"
        return first

    def _print_Abs(self, expr):
        text = self._print(expr.args[0])
        return f"(long)abs((long)({text}))" if expr.is_integer else f"fabs((float)({text}))"

    def _print_Where(self, expr):
        condition, a, b = self._operands(expr)
        return f"({condition} ? {a} : {b})"

    def _print_And(self, expr):
        return "(" + " && ".join(self._operands(expr)) + ")"

    def _print_Or(self, expr):
        return "(" + " || ".join(self._operands(expr)) + ")"

    def _print_Not(self, expr):
        return f"!({self._print(expr.args[0])})"

    def _rounded(self, function, expr):
        return f"(long){function}((float)({self._print(expr.args[0])}))"

    def _print_FloorToInt(self, expr):
        return self._rounded("floor", expr)

    _print_floor = _print_FloorToInt

    def _print_CeilToInt(self, expr):
        return self._rounded("ceil", expr)

    _print_ceiling = _print_CeilToInt

    def _print_RoundToInt(self, expr):
        return self._rounded("rint", expr)

    def _print_TruncToInt(self, expr):
        return self._rounded("trunc", expr)

    def _print_ToFloat(self, expr):
        return f"(float)({self._print(expr.args[0])})"

    def _print_IntTrueDiv(self, expr):
        a, b = self._operands(expr)
        return f"((float){a} / (float){b})"

    def _print_PowByNatural(self, expr):
        a, b = self._operands(expr)
        return f"t_pow_long({a}, {b})"

    def _print_Float(self, expr):
        return str(int(expr)) if expr.is_integer else f"{float(expr)!r}f"

    def _print_Integer(self, expr):
        value = int(expr)
        return str(value) if -(1 << 31) < value < 1 << 31 else f"{value}L"


class WideIndexPrinter(IndexPrinter):
    """With arithmetic in 64 bits."""

    def _print_Symbol(self, expr):
        return f"(long){super()._print_Symbol(expr)}"
