// Numbers, conditions and places of the random kernels of workgroup_forms_program.h.
#include "workgroup_forms_program.h"

namespace polder::compiler::workgroup::test {

std::string FormsProgram::shared_number(const Scope& scope) {
    const uint32_t choice = pick(6);
    if (choice == 0)
        return std::to_string(pick(20)) + "u";
    std::string a = one_of(scope.shared);
    if (choice < 4)
        return a;
    const std::string b = one_of(scope.shared);
    return "(" + a + one_of(" + ", " ^ ", " * ", " & ", " >> 1 | ") + b + ")";
}

std::string FormsProgram::number(const Scope& scope, int depth) {
    const uint32_t choice = pick(depth > 0 ? 16 : 6);
    if (choice < 3)
        return one_of(scope.numbers);
    if (choice == 3)
        return shared_number(scope);
    if (choice == 4)
        return "(uint)" + one_of(scope.places);
    if (choice == 5)
        return std::to_string(pick(4) ? pick(40) : pick(0xffffffffU)) + "u";
    const std::string a = number(scope, depth - 1);
    const std::string constant = std::to_string(1 + pick(31));
    if (choice == 6)
        return one_of("(uint)(uchar)(", "(uint)(char)(", "popcount(", "(uint)(ushort)(", "~(", "clz(",
                      "(uint)convert_uchar_sat(") +
               a + ")";
    if (choice == 7)
        return "(" + a + one_of(" >> ", " << ", " / ", " % ") + constant + "u)";
    if (choice == 8)
        return one_of("rotate(", "max(", "min(", "mul_hi(", "abs_diff(") + a + ", " + constant + "u)";
    if (choice == 9)
        return "(uint)((int)" + a + " >> " + constant + ")";
    const std::string b = number(scope, depth - 1);
    if (choice == 10)
        return "(" + a + one_of(" >> (", " << (") + b + " & 31))";
    if (choice == 11) {
        const std::string condition = varying_condition(scope);
        return "(" + condition + " ? " + a + " : " + b + ")";
    }
    return "(" + a + one_of(" + ", " - ", " * ", " ^ ", " | ", " & ") + b + ")";
}

// An index from 0 to less than `limit`.
std::string FormsProgram::below(const Scope& scope, uint32_t limit) {
    const std::string a = number(scope, 1), size = std::to_string(limit), last = std::to_string(limit - 1);
    const std::string p = one_of(scope.places);
    switch (pick((limit & (limit - 1)) == 0 ? 6 : 4)) {
    case 0: return "(int)(" + a + " % " + size + ")";
    case 1: return "min(" + a + " % 100u, " + last + "u)";
    case 2: return "clamp(" + p + ", 0, " + last + ")";
    case 3: return "min(max(" + p + " - " + std::to_string(pick(9)) + ", 0), " + last + ")";
    case 4: return "(" + p + " & " + last + ")";
    default: return "(" + a + one_of(" >> 3", " >> 26", "") + " & " + last + ")";
    }
}

std::string FormsProgram::shared_condition(const Scope& scope) {
    const std::string a = shared_number(scope);
    return "(" + a + one_of(" & 1) != 0", " & 2) == 0", " % 3) == 1", " & 7) < 3", " | 1) == 3", ") > 5u");
}

std::string FormsProgram::varying_condition(const Scope& scope) {
    const std::string a = number(scope, 1), p = one_of(scope.places);
    switch (pick(5)) {
    case 0: return "(" + a + " & 3) == 1";
    case 1: return "(" + a + " & 7) < 5";
    case 2: return "(int)" + a + " < 0";
    case 3: return p + one_of(" > 7", " < 19", " != 3", " >= width", " < reach");
    default: return "(" + a + " ^ " + p + ") % 3u == 0";
    }
}

// A place near an id that edges reflect, from -3000 to 3000.
std::string FormsProgram::reflected(const Scope& scope, std::string& code) {
    const std::string name = fresh("r"), p = one_of(scope.places),
                      step = one_of("- 2", "+ 1", "- 7", "+ 12", "- reach", "- (int)(n & 7)");
    const std::string end = one_of("width", "reach", "63", "height", "4 * width");
    const char* const forms[] = {
        "int $n = $p $s; $n = min(2 * $e - $n, max($n, -$n));\n",
        "int $n = $p $s; $n = max(min($n, 2 * $e - $n), -$n);\n",
        "int $n = $p $s; $n = $n < 0 ? -$n : $n; $n = $n > $e ? 2 * $e - $n : $n;\n",
        "int $n = abs($p $s); $n = min($n, 2 * ($e) - 1 - $n);\n",
        "int $n = $p $s; if ($n < 0) $n = -1 - $n; if ($n >= $e) $n = 2 * $e - 1 - $n;\n",
        "uint $nu = $p $s; const int $n = (int)min($nu, 2u * (uint)($e) - $nu);\n",
        "int $n = clamp($p $s, 0, $e < 0 ? 0 : $e);\n",
        "int $n = (short)min((short)($p $s), (short)(2 * $e - ($p $s)));\n",
        "int $n = (char)($p $s); $n = min($n, -$n);\n",
        "int $n = ($p $s + 4096) % ($e == 0 ? 1 : abs($e)); $n = $n < 0 ? 0 : $n;\n",
        "int $n = $e - 1 - $p;\n",
        "int $n = min($p, $e - $p); $n = max($n, $p - 2 * ($e));\n",
    };
    code += filled(forms[pick(std::size(forms))], {{"n", name}, {"p", p}, {"s", step}, {"e", end}});
    return name;
}

// A place in a row near that of the work-item, from -5000 to 5000.
std::string FormsProgram::row(const Scope& scope, std::string& code) {
    const std::string p = one_of(scope.places), q = pick(4) ? one_of(scope.places) : reflected(scope, code);
    const std::string pitch = one_of("13", "16", "width", "7", "1", "(int)(n & 15)");
    const std::string up = one_of("- 1", "+ 1", "- 2", "", "- (int)(n & 3)");
    const char* const forms[] = {
        "($p $u) * $w + $q",
        "(int)((uint)($p $u) * (uint)$w + (uint)($q))",
        "(long)($p $u) * $w + $q",
        "($q $u) + ($p) * $w",
        "((($p $u) * $w + $q) & 4095)",
        "((uint)(($p $u) * $w + $q) & 2047u)",
        "(ushort)(($p $u) * $w + $q) % 3001",
        "(int)((long)(uint)($p $u) * $w + (long)($q))",
        "(int)(((ulong)(uint)($p) + 0xffffffffUL) * (ulong)$w + (ulong)($q))",
        "(($p * 4 $u) * 4 + ($q & 3))",
        "((($p $u) >> 4 << 6) + ($q & 15))",
        "(($p $u) / 8 * 32 + ($p) % 8)",
        "(int)(((uint)($p $u) << 2 & 0x3fc0u) | ((uint)($p) & 15u))",
        "(int)(((ulong)(uint)($p $u) + (ulong)(uint)($q)) & 255)",
        "(int)(((ulong)(uint)($q) - (ulong)(uint)($p)) & 1023)",
    };
    return filled(forms[pick(std::size(forms))], {{"p", p}, {"q", q}, {"w", pitch}, {"u", up}});
}

std::string FormsProgram::place(const Scope& scope, std::string& code) {
    const uint32_t choice = pick(8);
    if (choice < 3)
        return row(scope, code);
    if (choice < 5)
        return reflected(scope, code);
    if (choice == 5)
        return below(scope, 1024);
    const std::string p = one_of(scope.places);
    return p + one_of("", " - 1", " + 3", " * 2", " * 3 + 1", " - reach");
}

} // namespace polder::compiler::workgroup::test
