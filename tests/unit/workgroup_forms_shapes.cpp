// Statements of the shapes that decisions 360 to 368 look for: walks with a private stack, rows that a work-item writes, divisions by an argument that may be 1,
// windows inside of a picture, vectors that are shuffled or of which only elements are used, and blocks of work-items that begin at a row of the group.
#include "workgroup_forms_program.h"

namespace polder::compiler::workgroup::test {

std::string FormsProgram::shape_statement(const Scope& scope) {
    const bool is_of_kernel = scope.has_memory && !scope.is_function;
    switch (pick(is_of_kernel ? 7 : 4)) {
    case 0: return private_stack(scope);
    case 1: return window_of_places(scope);
    case 2: return shuffled_vector(scope);
    case 3: return elements_of_vectors(scope);
    case 4: return written_row(scope);
    case 5: return divided_by_argument(scope);
    default: return block_of_group(scope);
    }
}

// What is pushed for a number is less than it together, so a walk has at most 63 steps, and at most 12 numbers wait.
std::string FormsProgram::private_stack(const Scope& scope) {
    const std::string s = fresh("s"), h = fresh("h"), e = fresh("e"), v = one_of(scope.numbers),
                      type = one_of("uint", "uint", "ushort", "uchar", "ulong", "int"),
                      height = one_of("int", "int", "uint", "ushort", "uchar"), first = number(scope, 1),
                      condition = varying_condition(scope);
    const bool has_depths = pick(3) == 0;
    const std::string d = s + "d";
    std::string code = "{\nARRAY " + type + " " + s + "[40]; ARRAY uint " + d + "[40]; " + height + " " + h + " = 1;\n";
    code += s + "[0] = (" + first + ") & 63u; " + d + "[0] = 1;\n";
    const auto push = [&](const std::string& value) {
        const std::string depth = has_depths ? d + "[$h] = depth + 1; " : "";
        return depth + one_of(s + "[$h] = " + value + "; ++$h;\n", s + "[$h++] = " + value + ";\n",
                              s + "[$h] = 7; " + s + "[$h] = " + value + "; $h = $h + 1;\n");
    };
    code += one_of("while ($h > 0) {\n", "while ($h) {\n", "do {\n");
    const bool is_do = code.ends_with("do {\n");
    code += one_of("const uint $e = " + s + "[--$h];\n", "--$h; const uint $e = " + s + "[$h];\n");
    code +=
        has_depths ? "const uint depth = " + d + "[$h]; " + v + " += $e * depth;\n" : v + " = " + v + " * 3 + $e;\n";
    if (scope.has_memory && !scope.is_function && pick(3) == 0)
        code += "out[at] = " + v + ";\n";
    code += one_of("if ($e < 3) continue;\n", "if ($e >= 3) {\n");
    const bool is_nested = code.ends_with("{\n");
    code += push("$e / 3");
    const std::string second = push(one_of("$e - $e / 3 - 1", "$e / 2", "($e - 1) / 2"));
    code += pick(4) ? "if (" + one_of(std::string("($e & 1) != 0"), std::string("$e % 5 == 2"), condition) + ") {\n" +
                          second + "}\n"
                    : second;
    if (pick(4) == 0)
        code += "if ($e % 7 == 0) " + s + "[$h - 1] = " + s + "[$h - 1] / 2;\n";
    code += is_nested ? "}\n" : "";
    code += is_do ? "} while ($h > 0);\n}\n" : "}\n}\n";
    return filled(code, {{"h", h}, {"e", e}});
}

// From a maximum to a minimum, which may be before it.
std::string FormsProgram::window_of_places(const Scope& scope) {
    const std::string p = one_of(scope.places), q = one_of(scope.places), v = one_of(scope.numbers), b = fresh("b"),
                      i = fresh("i"), left = one_of("1", "2", "3", "(int)(n & 3)"),
                      right = one_of("2", "3", "1", "(int)(n & 3)"),
                      end = one_of("width", "height", "reach", "2 * width");
    std::string code = "{ const int $b0 = max($p - $l, 0), $b1 = min($p + $r, $e);\n";
    const bool has_rows = pick(2) != 0;
    if (has_rows)
        code += "const int $c0 = max($q - $l, 0), $c1 = min($q + $r, height);\nfor (int $j = $c0; $j < $c1; ++$j)\n";
    code += one_of("for (int $i = $b0; $i < $b1; ++$i) $v += in[", "for (long $i = $b0; $i < $b1; $i += 2) $v += in[",
                   "for (int $i = $b0; $i <= $b1 - 1; ++$i) $v += in[",
                   "for (int $i = $b1 - 1; $i >= $b0; --$i) $v += in[");
    code += std::string(has_rows ? "$j * width + $i" : "$i") + "] * " +
            one_of("3u", "(uint)($i - $b0)", "(uint)($i - $p)", "(uint)($i == $p)", "(uint)($i < $p)") + ";\n";
    if (pick(2))
        code += "$v ^= (uint)($b1 - $b0);\n";
    return filled(code + "}\n", {{"p", p},
                                 {"q", q},
                                 {"v", v},
                                 {"b", b},
                                 {"c", b + "c"},
                                 {"i", i},
                                 {"j", i + "j"},
                                 {"l", left},
                                 {"r", right},
                                 {"e", end}});
}

std::string FormsProgram::shuffled_vector(const Scope& scope) {
    const uint32_t count = 4U << pick(3);
    const std::string q = fresh("q"), n = std::to_string(count), v = one_of(scope.numbers), value = number(scope, 1);
    std::string code = "{\n";
    const std::string at = place(scope, code), type = one_of("uint", "ushort", "uchar", "ushort", "uchar", "ulong");
    const std::string mask =
        one_of("$q >> ($t)1", "$q + ($t)(" + value + ")", "convert_$t" + n + "(vload" + n + "(1, in + " + at + "))");
    code += "$t" + n + " $q = convert_$t" + n + "(vload" + n + "(0, in + " + at + "));\n";
    switch (pick(4)) {
    case 0: code += "$q ^= shuffle($q, $m);\n"; break;
    case 1: code += "$q += shuffle2($q, $q * ($t)3, $m);\n"; break;
    case 2: {
        std::string elements;
        for (uint32_t e = 0; e < count; ++e) {
            const uint32_t from = pick(9) ? e : pick(count);
            elements +=
                (e ? ", $q[(uint)$q.s" : "$q[(uint)$q.s") + std::string(1, "0123456789abcdef"[from]) + " % " + n + "u]";
        }
        code += "$q += ($t" + n + ")(" + elements + ");\n";
        break;
    }
    default: code += "if (" + varying_condition(scope) + ") $q = shuffle($q, $m);\n";
    }
    const std::string at_end = std::string("0123456789abcdef").substr(pick(count), 1);
    code += v + " += (uint)($q.s0 ^ $q.s3 * 5 ^ $q.s" + at_end + " * 7);\n}\n";
    return filled(filled(code, {{"q", q}, {"m", mask}, {"t", "$t"}}), {{"q", q}, {"t", type}});
}

// A vector is loaded at once, and its elements are numbers.
std::string FormsProgram::elements_of_vectors(const Scope& scope) {
    const std::string q = fresh("q"), i = fresh("i"), v = one_of(scope.numbers), w = one_of(scope.numbers),
                      index = below(scope, 64), rounds = pick(2) ? shared_number(scope) : number(scope, 1),
                      type = one_of("uint4", "uint4", "uint2", "ushort4");
    std::string code = "for (uint $i = 0; $i < ((" + rounds + ") & 7); ++$i) { const " + type +
                       " $q = ((global const " + type + "*)in)[(" + index + " + $i * " + one_of("3", "1", "5") +
                       ") & 127]; ";
    code += one_of("if ($q.x < $v) { $v += $q.y; $w ^= $q.x; } ", "$v += $q.x * $q.y; ",
                   "$v = max($v, (uint)$q.x) - $q.y; ");
    if (type.ends_with("4"))
        code += one_of("$w += $q.z; ", "if ($q.w & 1) $w ^= $q.z; ", "");
    return filled(code + "}\n", {{"i", i}, {"q", q}, {"v", v}, {"w", w}});
}

// Words of the work-item's own, one after the other, from a private array.
std::string FormsProgram::written_row(const Scope& scope) {
    if (side_by_side_)
        return own_words_again(scope);
    const std::string a = fresh("a"), j = fresh("j"), v = one_of(scope.numbers), w = one_of(scope.numbers),
                      array = one_of("own", "own", has_alias_ ? "alias" : "own"), shared = shared_number(scope),
                      index = below(scope, 8);
    std::string code =
        "{\nARRAY uint $a[8]; for (int i = 0; i < 8; ++i) $a[i] = in[" + one_of(scope.places) + " + i] ^ $v;\n";
    code += "global uint* const $r = " + array + " + mine * 16;\n";
    switch (pick(6)) {
    case 0: code += "for (uint $j = 0; $j < ($s & 15); ++$j) $r[$j] = $a[$j & 7] + $v;\n"; break;
    case 1: code += "for (int $j = 15; $j >= (int)($s & 7); --$j) $r[$j] = $a[$j & 7];\n"; break;
    case 2: code += "for (uint $j = 1; $j < ($s & 15) + 1; ++$j) $r[$j - 1] = $r[$j] + 1;\n"; break;
    case 3: code += "for (uint $j = 0; $j < ($s & 15); ++$j) { $r[$j] = $a[$j & 7]; $a[($j + 3) & 7] += $w; }\n"; break;
    case 4: code += "for (uint $j = 0; $j < 16; ++$j) $r[$j] = $a[($j + (" + index + ")) & 7];\n"; break;
    default: {
        const std::string first = std::to_string(pick(13)), condition = varying_condition(scope);
        std::string stores;
        for (uint32_t k = 0; k < 4; ++k) {
            const std::string place = std::to_string(pick(8) ? k : pick(4));
            const std::string from = pick(3) ? std::to_string(pick(8)) : "(" + index + ")";
            stores += "$r[" + first + " + " + place + "] = $a[" + from + "];\n";
        }
        code += pick(2) ? stores : "if (" + condition + ") {\n" + stores + "}\n";
    }
    }
    if (pick(2))
        code += "$v += $r[" + below(scope, 16) + "];\n";
    return filled(code + "}\n", {{"a", a}, {"j", j}, {"r", a + "r"}, {"s", "(" + shared + ")"}, {"v", v}, {"w", w}});
}

// As the passes of a transformation do: `stage` is 1 in the first one.
std::string FormsProgram::divided_by_argument(const Scope& scope) {
    const std::string k = fresh("k"), v = one_of(scope.numbers), w = one_of(scope.numbers),
                      p = one_of("(uint)x", "(uint)get_global_id(0)", "lid", "(uint)at"),
                      type = one_of("uint", "uint", "int", "ulong", "long");
    std::string code = "{\nconst $t $i = $p, $d = stage, $k = $i % $d;\n";
    code += one_of("if (stage == 1) $v += 5; else $v ^= (uint)$k * 3;\n", "if (stage != 1) $v = $v * 3 + (uint)$k;\n",
                   "$v += stage == 1 ? 7u : (uint)$k;\n");
    code += one_of("$w += in[(($i - $k) * 2 + $k) & 1023];\n", "$w ^= in[($i / $d + $k) & 1023];\n",
                   "for (int i = 0; i < 3; ++i) $w += in[(($i + i) % $d + ($i + i) / $d * 2) & 1023];\n");
    return filled(code + "}\n", {{"k", k}, {"i", k + "i"}, {"d", k + "d"}, {"v", v}, {"w", w}, {"p", p}, {"t", type}});
}

// Numbers of work-items in a group of several rows, and blocks of them.
std::string FormsProgram::block_of_group(const Scope& scope) {
    const std::string b = fresh("b"), v = one_of(scope.numbers), w = one_of(scope.numbers);
    const char* const numbers[] = {
        "(uint)get_local_id(1) * (uint)get_local_size(0) + (uint)lx",
        "(uint)(get_local_id(1) * get_local_size(0)) + (uint)lx + 16u",
        "(uint)get_global_id(1) * (uint)get_global_size(0) + (uint)get_global_id(0)",
        "(uint)get_group_id(0) * (uint)get_local_size(0) + (uint)lx",
        "((uint)get_local_id(1) + 1u) * (uint)get_local_size(0) + (uint)lx - (n & 1) * 16u",
        "(uint)lx + (n & 48)",
    };
    const char* const blocks[] = {"$b / 16",
                                  "$b & ~15u",
                                  "$b & 0x70",
                                  "$b / 32 * 32 + ($b & 31)",
                                  "$b >> 4 << 2",
                                  "($b << 4) / 1024",
                                  "$b & 0x30",
                                  "$b % 64",
                                  "(uint)((int)$b - 16) >> 5",
                                  "(uint)(((int)$b - 32) / 16)",
                                  "(ushort)($b << 8) >> 12"};
    std::string code = "{\nconst uint $b = " + std::string(numbers[pick(std::size(numbers))]) + ";\n";
    code += "$v += in[(" + std::string(blocks[pick(std::size(blocks))]) + ") & 1023];\n";
    const std::string block = blocks[pick(std::size(blocks))];
    code += one_of("$w ^= " + block + ";\n", "$w += in[((" + block + ") + (uint)(lx & 3)) & 1023];\n",
                   "for (uint i = 0; i < (n & 3); ++i) $w = $w * 3 + in[((" + block + ") * 4 + i) & 1023];\n");
    return filled(code + "}\n", {{"b", b}, {"v", v}, {"w", w}});
}

}  // namespace polder::compiler::workgroup::test
