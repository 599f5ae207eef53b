// Statements for passes that the other statements hardly reach: sums whose checks at the edges all succeed, merges of two lists, counters that wrap around at
// a few bits beside wider ones, and fused products.
#include "workgroup_forms_program.h"

namespace polder::compiler::workgroup::test {

std::string FormsProgram::pass_statement(const Scope& scope) {
    switch (pick(4)) {
    case 0: return checked_sum(scope);
    case 1: return merged_lists(scope);
    case 2: return narrow_counters(scope);
    default: return fused_sum(scope);
    }
}

// A chain over places of a row, each of which is compared with both ends of a range.
std::string FormsProgram::checked_sum(const Scope& scope) {
    const std::string v = one_of(scope.numbers), w = one_of(scope.numbers), j = fresh("j"), q = j + "q",
                      from = one_of("0", "-3", "-(int)(n & 7)", "(int)$w & 3"),
                      to = one_of("8", "(int)(n & 15)", "from + 20", "(int)$w & 15"),
                      counter = one_of("int", "int", "int", "long", "short"),
                      type = one_of("int", "int", "long", "short"), step = one_of("1", "1", "2", "3"),
                      end = one_of("width", "4 * width", "reach", "50", "(int)n"), start = one_of(scope.places);
    const std::string place =
        one_of("($t)($p + $j)", "($t)($p - $j)", "($t)($j * 2 + $p)", "($t)(uchar)($j + $p)", "($t)($p * 3 + $j - 5)");
    const std::string is_inside =
        one_of("$q >= 0 && $q < $e", "!($q < 0 || $q >= $e)", "$q > -1 && $q <= $e",
               "$q < $e && $q >= 0 && $q < 2 * width", "(uint)$q < (uint)($e)", "$q >= 1 && $q < ($e) - 1");
    const std::string divided = pick(3) ? "" : "if ((n & 3) != 0 && $v / (n & 3) + $j > 9) $w += 3; ";
    const std::string body =
        one_of("if ($i) $v = $v * 3 + in[$q]; else $v ^= 5; ", "$v += ($i) ? in[$q] : in[0]; $v ^= $v >> 7; ",
               "if (!($i)) continue; $v = max($v, (uint)in[$q]) + 1; ",
               "$v = rotate($v, 5u) + in[$q < 0 ? 0 : $q < $e ? $q : 3]; ");
    std::string code =
        "{ const int from = " + from + ", to = " + to + ", start = " + start + ";\nfor ($c $j = ($c)from; ";
    code += pick(4) ? "$j <= to; $j += $s) { " : "$j < from + 17; ++$j) { ";
    code += "const $t $q = " + place + "; " + divided + body + "} }\n";
    const std::vector<std::pair<std::string, std::string>> names = {
        {"c", counter}, {"e", end},  {"i", is_inside}, {"j", j}, {"p", "start"},
        {"q", q},       {"s", step}, {"t", type},      {"v", v}, {"w", w}};
    return filled(filled(code, names), names);
}

// Two lists are walked through at once; the smaller number is taken, or both if they are equal.
std::string FormsProgram::merged_lists(const Scope& scope) {
    const std::string v = one_of(scope.numbers), w = one_of(scope.numbers), i = fresh("i"),
                      type = one_of("uint", "int", "uint", "ulong", "ushort"), bits = one_of("7", "15", "255"),
                      a = one_of("in[start + (int)$i]", "in[$i & 1023]", "bytes[$i & 4095]"),
                      b = one_of("in[start + 9 + (int)$j]", "in[$j * 2 & 1023]", "bytes[$j + 64 & 4095]"),
                      start = one_of(scope.places), steps = number(scope, 1),
                      last = one_of("9", "(n & 15)", "($w & 15)");
    const bool has_stores = scope.has_memory && !scope.is_function && pick(2);
    std::string sides[3];
    for (std::string& side : sides) {
        side = one_of("", "$v += 3; ", "$v ^= $k; ", "++$k; ");
        if (has_stores && pick(2))
            side += own_word("($k & 3)") + " = one; ++$k; ";
    }
    const std::string both = "{ " + sides[0] + "++$i; ++$j; }", first = "{ " + sides[1] + "++$i; }",
                      second = "{ " + sides[2] + "++$j; }";
    std::string code = "{ const int start = " + start +
                       "; $t $i = ($t)($w & 3), $j = ($t)(n & 3); uint $k = 0;\nconst $t end = $i + ($t)((" + steps +
                       ") & 15), last = $j + ($t)" + last + ";\n";
    code += one_of("while ($i < end && $j < last) {\n", "while ($i != end && $j < last) {\n");
    code += "const uint one = " + a + " & " + bits + ", other = " + b + " & " + bits + ";\n";
    code += one_of("if (one == other) " + both + " else if (one < other) " + first + " else " + second,
                   "if (one <= other) " + first + " else " + second,
                   "if (one < other) " + first + " else if (other < one) " + second + " else " + both);
    code += "\n}\n$v += $k + (uint)$i * 3 + (uint)$j * 5; }\n";
    return filled(code, {{"i", i}, {"j", i + "j"}, {"k", i + "k"}, {"t", type}, {"v", v}, {"w", w}});
}

// Counters of 8 and 16 bits, and lower bits of a counter, beside sums of 32 and 64.
std::string FormsProgram::narrow_counters(const Scope& scope) {
    const std::string v = one_of(scope.numbers), i = fresh("i"),
                      type = one_of("uint", "int", "ulong", "long", "ushort"), some = number(scope, 1),
                      place = one_of(scope.places);
    const std::string base = one_of("(uint)" + place, "(" + some + ") & 511", "n & 63"),
                      count = one_of("20", "n & 31", "(" + some + ") & 31", "300"),
                      step = one_of("++$i", "++$i", "$i += 2", "$i += 3"),
                      use = one_of("$v += $x ^ $y;", "$v += $x + $y;", "$v = max($v, (uint)($x + $y));",
                                   "$v = $v * 3 + $x - $y;");
    const char* const terms[] = {"in[(uint)(base + $i) & 1023]",
                                 "bytes64[(uint)$i & 3]",
                                 "words64[(uint)$i & 15]",
                                 "(uint)(uchar)($i * 3 + base)",
                                 "(uint)(char)($i + 7)",
                                 "bytes[(ushort)(base - $i) & 4095]",
                                 "in[(uchar)($i + base)]",
                                 "($i + base & 7)",
                                 "bytes64[(uint)(base + $i) & 63]",
                                 "in[1024 + (base + ($i & 7))]",
                                 "(uint)(short)((short)$i + (short)base)"};
    const std::string x = terms[pick(std::size(terms))], y = terms[pick(std::size(terms))];
    const std::string code = "{ const uint base = " + base + ", count = " + count +
                             "; for ($t $i = 0; $i < ($t)count; " + step + ") " +
                             filled(use, {{"x", x}, {"y", y}, {"v", "$v"}}) + " }\n";
    return filled(code, {{"i", i}, {"t", type}, {"v", v}});
}

// No product but by -1 is added without fma: some processors would round only the sum.
std::string FormsProgram::fused_sum(const Scope& scope) {
    const std::string v = one_of(scope.numbers), w = one_of(scope.numbers), a = number(scope, 1), b = number(scope, 1),
                      x = fresh("x");
    const bool is_double = pick(3) == 0;
    std::string code = is_double ? "{ const double $x = as_double(((ulong)($a) << 32 | ($b)) & 0xbfffffffffffffffUL), "
                                   "$y = (double)($b), $z = "
                                 : "{ const float $x = as_float(($a) & 0xbfffffffu), $y = (float)($b), $z = ";
    code += one_of("-$x * $y", "-$x - $y", "$y * $y",
                   is_double ? "as_double((ulong)($w) << 31)" : "as_float(($w) & 0x3fffffffu)");
    code += is_double ? ", $r = fma($x, $y, $z); $v ^= (uint)(as_ulong($r) >> 32 ^ as_ulong($r)); }\n"
                      : ", $r = fma($x, $y, $z); $v ^= as_uint($r); }\n";
    return filled(code,
                  {{"a", a}, {"b", b}, {"r", x + "r"}, {"v", v}, {"w", w}, {"x", x}, {"y", x + "y"}, {"z", x + "z"}});
}

}  // namespace polder::compiler::workgroup::test
