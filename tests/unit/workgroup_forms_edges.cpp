// Statements for what decisions 385 to 389 look for: loops that end at the edges of the data, questions about two numbers at once, volatile variables of one
// work-item, and rows of local memory that atomic operations change.
#include "workgroup_forms_program.h"

namespace polder::compiler::workgroup::test {

std::string FormsProgram::edge_statement(const Scope& scope) {
    const bool is_of_kernel = scope.has_memory && !scope.is_function;
    switch (pick(is_of_kernel ? 4 : 3)) {
    case 0: return clipped_loop(scope);
    case 1: return joined_question(scope);
    case 2: return volatile_variable(scope);
    default: return changed_local_row(scope);
    }
}

// Limits that are chosen by comparisons of all widths. A loop has at most 64 iterations.
std::string FormsProgram::clipped_loop(const Scope& scope) {
    const std::string v = one_of(scope.numbers), w = one_of(scope.numbers), i = fresh("i"), p = one_of(scope.places),
                      reach = one_of("2", "1", "(int)(n & 7)", "(int)(n & 3)"),
                      end = one_of("width", "height", "reach", "30", "(int)(n & 63)"), some = below(scope, 8);
    const char* const questions[] = {"$p + $r >= $e",
                                     "$p - $r < 0",
                                     "$p > $e - $r",
                                     "(uint)($p - 1) < (uint)$e",
                                     "(uint)$p - $r >= (uint)$e",
                                     "(long)$p + $r > $e",
                                     "(ulong)(long)$p - $r < (ulong)$e",
                                     "(ulong)(uint)($p - $r) <= (ulong)(uint)$e",
                                     "(uchar)($p + $r) >= (uchar)$e",
                                     "(short)($p - $r) < (short)-1",
                                     "$p * $r + 3 >= $e",
                                     "$p != $e",
                                     "$p == $r",
                                     "2 * $p - 7 < $e",
                                     "$e <= $p && $p < $e + 9"};
    const auto question = [&] { return std::string(questions[pick(std::size(questions))]); };
    const std::string first =
        pick(3) ? question() + one_of(" ? min($p + $r + 1, 40) : 0", " ? $s : 1", " ? 2 : $s", " ? ($p & 7) : 0")
                : one_of("0", "$s", "$p + $r >= $e ? ($p > 40 ? 3 : $p & 3) : 0");
    const std::string last = question() + one_of(" ? min($p + $r + 1, 9) : 7", " ? $s : 9", " ? 5 : ($p & 15)",
                                                 " ? 3 : (int)(n & 15)", " ? ($p > 20 ? 3 : 4) : 8");
    const std::string body =
        one_of("$v = $v * 3 + in[$p - $i];", "$v += in[$i + $p] ^ $i;", "if ((in[$i] & 3) == 0) break; $v ^= $i * 5;",
               "if ($v & 1) continue; $w += in[$i * 2 - $p];", "$v += bytes[$i & 63]; $w ^= $v;",
               "for (int j = 0; j < ($p > $e ? $p & 3 : 2); ++j) $v += in[$i * 3 + j];");
    std::string code = "{ const int $b = " + first + ", $c = " + last + ";\n";
    code += one_of("for (int $i = $b; $i < $c; ++$i) ", "for (int $i = $b; $i < $c; $i += 2) ",
                   "for (int $i = $c; $i > $b; --$i) ", "for (int $i = $b; $i <= $c; ++$i) ");
    const std::vector<std::pair<std::string, std::string>> names = {
        {"b", i + "b"}, {"c", i + "c"}, {"e", end}, {"i", i}, {"p", p}, {"r", reach}, {"s", "(int)(" + some + ")"},
        {"v", v},       {"w", w}};
    return filled(code + "{ " + body + " } }\n", names);
}

std::string FormsProgram::joined_question(const Scope& scope) {
    const std::string v = one_of(scope.numbers), p = one_of(scope.places), q = one_of(scope.places),
                      a = shared_number(scope), b = one_of("width", "(int)n", "-3", "reach", "(int)(n & 9)");
    const char* const questions[] = {"$p + $b < 0 || $q - 5 < 0",
                                     "(($p | $q) & ~31) != 0",
                                     "(uint)($p | $b) > 63u",
                                     "(uint)($p | $q | $b) < 64u",
                                     "($p | (int)($a)) >= 0",
                                     "((long)$p | ((long)$b << 31)) < 0",
                                     "((ulong)(uint)$p | (ulong)($a) << 3) > 0xffffffffUL",
                                     "(uchar)($p | $b) == 0",
                                     "(short)($p | ($b << 8) | $q) < 0",
                                     "(($p + $b) | ($q * 3)) > -1",
                                     "((uint)$p + ($a) | (uint)$q) < 256u",
                                     "(char)($p + $b) < 0 || (char)($q + 100) < 0",
                                     "(int)((ulong)(uint)$p | (ulong)($a) << 20) < 0",
                                     "(uint)($p | $q << 4 | $b) >= 128u"};
    std::string code = "if (" + std::string(questions[pick(std::size(questions))]) + ") ";
    code += one_of("$v += 3; else $v ^= $p;\n", "$v = $v * 5 + in[$q];\n",
                   "for (int j = 0; j < 3; ++j) $v += in[$p + j];\n");
    return filled(code, {{"a", a}, {"b", "(" + b + ")"}, {"p", p}, {"q", q}, {"v", v}});
}

// Of constants, which need not be read, and of other numbers.
std::string FormsProgram::volatile_variable(const Scope& scope) {
    const std::string v = one_of(scope.numbers), w = one_of(scope.numbers), z = fresh("z"), count = number(scope, 1),
                      condition = varying_condition(scope), index = below(scope, 3),
                      type = one_of("uint", "int", "uchar", "ushort", "ulong", "char", "short");
    const bool is_array = pick(3) == 0;
    const std::string one = is_array ? "$z[" + index + "]" : "$z", other = is_array ? "$z[$v & 3]" : "$z";
    const auto changed = [&] {
        return one_of(one, other) + one_of(" = 7; ", " = 200; ", " = 0; ", " = ($t)70000; ", " = ($t)$v; ", " += 3; ");
    };
    std::string code = "{ volatile $t $z" + std::string(is_array ? "[4] = {1, 2, 3, 4};\n" : " = 3;\n");
    code += pick(2) ? "if (" + condition + ") { " + changed() + "}\n" : "";
    code += one_of("for (uint $j = 0; $j < (($c) & 7); ++$j) ", "for (uint $j = 0; $j < (n & 7); ++$j) ",
                   "for (uint $j = 1; $j < 6; $j += 2) ");
    code += "{ $v += (uint)" + other + one_of("; ", " * $j; ", " ^ $j; ");
    code += one_of("if ($j == 3) { " + changed() + "} ", changed(), "", "if ($v & 1) break; ");
    code += "}\n$w ^= (uint)" + other + "; }\n";
    return filled(filled(code, {{"c", count}, {"j", "$j"}, {"t", "$t"}, {"v", "$v"}, {"w", "$w"}, {"z", "$z"}}),
                  {{"j", z + "j"}, {"t", type}, {"v", v}, {"w", w}, {"z", z}});
}

// A word of local memory for each work-item, beside those that other statements use.
std::string FormsProgram::changed_local_row(const Scope& scope) {
    const std::string v = one_of(scope.numbers), value = number(scope, 1), condition = varying_condition(scope),
                      again = number(scope, 1);
    const auto change = [&](const std::string& by) {
        return "__opencl_atomic_" +
               one_of("fetch_add", "fetch_sub", "fetch_min", "fetch_max", "fetch_xor", "fetch_or", "exchange") +
               "((local $t*)&s[128 + lid], " + by + ", memory_order_relaxed, memory_scope_work_group)";
    };
    std::string code =
        one_of("$v += " + change(value), change(value), "$v ^= (uint)" + change(value) + " >> 3") + ";\n";
    if (pick(2))
        code = "if (" + condition + ") {\n" + code + "}\n";
    if (pick(2))
        code = "for (uint i = 0; i < ((" + again + ") & 3); ++i) {\n" + code + "}\n";
    code += one_of("$v += s[128 + lid];\n", "s[128 + lid] = $v;\n", "$v += " + change("1") + ";\n", "");
    return filled(code, {{"t", one_of("atomic_uint", "atomic_int")}, {"v", v}});
}

}  // namespace polder::compiler::workgroup::test
