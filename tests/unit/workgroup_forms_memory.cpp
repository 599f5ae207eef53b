// Statements about memory: private arrays whose words are accessed in parts, copies of bytes, taps of a filter with checks at the edges, members of structures that
// change in turns, vectors of 8 and 16, and numbers that live from barrier to barrier.
#include "workgroup_forms_program.h"

namespace polder::compiler::workgroup::test {

std::string FormsProgram::memory_statement(const Scope& scope) {
    const bool is_of_kernel = scope.has_memory && !scope.is_function;
    switch (pick(scope.meets_barriers ? 8 : 6)) {
    case 0: return words_and_parts(scope);
    case 1: return copied_bytes(scope);
    case 2: return checked_taps(scope);
    case 3:
    case 4: return is_of_kernel ? members_in_turns(scope) : words_and_parts(scope);
    case 5: return long_vector(scope);
    default: return numbers_across_barriers(scope);
    }
}

// Private arrays --------------------------------------------------------------------------------

// A part of `bytes` bytes, which is named by its type's pointer.
std::string FormsProgram::part_of(const Scope& scope, const std::string& array, uint32_t bytes) {
    const std::string part = one_of("b", "b", "h", "w");
    const uint32_t size = part == "b" ? 1 : part == "h" ? 2 : 4;
    const std::string index =
        pick(3) ? below(scope, bytes / size) : shared_number(scope) + " % " + std::to_string(bytes / size);
    return array + part + "[" + index + "]";
}

std::string FormsProgram::change_of_parts(const Scope& scope, const std::string& array, uint32_t bytes) {
    const std::string v = one_of(scope.numbers), value = number(scope, 1);
    const std::string part = part_of(scope, array, bytes), other = part_of(scope, array, bytes);
    switch (pick(6)) {
    case 0: return part + " = " + value + ";\n";
    case 1: return part + " ^= " + other + " + " + value + ";\n";
    case 2: {
        const std::string condition = varying_condition(scope);
        return "if (" + condition + ") { " + part + " += " + v + "; " + v + " ^= " + other + "; }\n";
    }
    case 3: {
        const std::string i = below(scope, bytes), j = below(scope, bytes);
        return "{ const uint i = " + i + ", j = " + j + "; const uchar t = " + array + "b[i]; " + array +
               "b[i] = " + array + "b[j]; " + array + "b[j] = t; }\n";
    }
    case 4: {
        // A pointer that walks, one or several elements in each iteration.
        const std::string rounds = pick(2) ? std::to_string(1 + pick(4)) : "(int)((" + number(scope, 1) + ") & 3)";
        const std::string type = one_of("uchar", "Halves", "Parts");
        const std::string change = pick(2) ? "walk[0] = " + v + " >> 3; " : "", begin = one_of("", " + 1");
        return "{ ARRAY " + type + "* walk = (ARRAY " + type + "*)" + array + "b" + begin + "; for (int i = 0; i < " +
               rounds + "; ++i) { " + v + " = " + v + " * 31 + walk[0]; " + change +
               one_of("++walk; ", "walk += i & 1; ", "++walk; " + v + " ^= *walk; --walk; ", "walk += 1; ") + "} }\n";
    }
    default:
        return "for (int i = 0; i < " + std::to_string(bytes) + "; ++i) " + array + "b[i] " +
               one_of("= 0;\n", "= 0xff;\n", "+= i;\n");
    }
}

std::string FormsProgram::array_of_parts(const Scope& scope, const std::string& array, uint32_t bytes) {
    const bool is_long = pick(3) == 0;
    const std::string type = is_long ? "ulong" : "uint", count = std::to_string(bytes / (is_long ? 8 : 4));
    std::string code;
    const std::string value = number(scope, 1), at = place(scope, code);
    return code + "ARRAY " + type + " " + array + "[" + count + "] __attribute__((aligned(8)));\nARRAY uchar* const " +
           array + "b = (ARRAY uchar*)" + array + ";\nARRAY Halves* const " + array + "h = (ARRAY Halves*)" + array +
           ";\nARRAY Parts* const " + array + "w = (ARRAY Parts*)" + array + ";\nfor (int i = 0; i < " + count +
           "; ++i) " + array + "[i] = " + (pick(2) ? "in[" + at + " + i] ^ " : "i * 0x10203UL ^ ") + value + ";\n";
}

std::string FormsProgram::words_and_parts(const Scope& scope) {
    const uint32_t bytes = 16 * (2 + pick(4));
    const std::string a = fresh("a"), v = one_of(scope.numbers);
    std::string code = "{\n" + array_of_parts(scope, a, bytes);
    const uint32_t changes = 1 + pick(3);
    for (uint32_t i = 0; i < changes; ++i) {
        const std::string change = change_of_parts(scope, a, bytes);
        const std::string condition = varying_condition(scope);
        code += pick(4) ? change : "if (" + condition + ") {\n" + change + "}\n";
    }
    const std::string part = part_of(scope, a, bytes), last = part_of(scope, a, bytes);
    return code + v + " ^= " + part + " + 3 * " + last + ";\n}\n";
}

// Between places that may overlap or be between words.
std::string FormsProgram::copied_bytes(const Scope& scope) {
    constexpr uint32_t all = 240;
    const std::string a = fresh("a"), o = fresh("a"), v = one_of(scope.numbers);
    const uint32_t count = pick(4) ? 100 + 4 * pick(20) : 100 + pick(60);
    const auto begin = [&](const std::string& array) {
        const uint32_t place = pick(all - count + 1);
        return array + "b + " + std::to_string(pick(3) ? place / 4 * 4 : place);
    };
    std::string code = "{\n" + array_of_parts(scope, a, all);
    code += array_of_parts(scope, o, all);
    const std::string index = "(" + one_of(scope.places) + " & 511)";
    const std::string from = pick(3)   ? begin(pick(3) ? o : a)
                             : pick(2) ? "bytes + " + std::to_string(4 * pick(9))
                                       : "bytes + 4 * " + index;
    // Loops of the kernel itself are unrolled before copies are looked for.
    const std::string function = from[0] == 'b' ? "copy_global_bytes(" : "copy_bytes(", to = begin(a);
    const std::string copy = function + to + ", " + from + ", " + std::to_string(count) + ");\n";
    const std::string condition = varying_condition(scope);
    code += pick(3) ? copy : "if (" + condition + ") " + copy;
    const std::string part = part_of(scope, a, all), last = part_of(scope, a, all), other = part_of(scope, o, all);
    return code + v + " ^= " + part + " + 3 * " + last + " ^ " + other + ";\n}\n";
}

// Loops -----------------------------------------------------------------------------------------

std::string FormsProgram::checked_taps(const Scope& scope) {
    const std::string v = one_of(scope.numbers), p = one_of(scope.places), taps = one_of("3", "5", "(int)(n & 3)"),
                      bound = one_of("width", "height", "reach", "(int)n", "2 * width", "reach - 9");
    const char* const checks[] = {
        "q >= 0 && q < $e",
        "q < $e && q >= 0",
        "!(q < 0 || q >= $e)",
        "(q > -1) & (q < $e)",
        "q + 2 >= 0 && q + 2 < $e",
        "q >= 1 && q - 1 < $e",
        "q >= -1 && q + 1 < $e",
        "q >= 0 && q < $e && (q & 3) != 1",
        "q >= 0 && q < $e && r >= 0 && r < height",
        "(r >= 0) & (q < $e) & (r < $e) & (q >= 0)",
        "q >= 0 && r < $e",
        "(short)q >= 0 && (short)q < (short)$e",
    };
    const std::string check = filled(checks[pick(std::size(checks))], {{"e", bound}});
    const std::string use = one_of("$v += in[q] * (i + 1); ", "$v ^= in[q + r]; ", "$v = $v * 3 + in[r]; ",
                                   "{ $v += in[q]; if ($v & 1) $v ^= in[r] >> 3; } ");
    std::string code = "for (int i = 0; i < " + taps + "; ++i) ";
    code += pick(2) ? "{ const int r = " + one_of(scope.places) + " + i; "
                    : "for (int j = 0; j < 3; ++j) { const int r = " + one_of(scope.places) + " + j; ";
    code += "const int q = " + p + one_of(" + i - 1; ", " - i; ", " + 2 * i - 3; ");
    code += pick(2) ? "if (" + check + ") " + filled(use, {{"v", v}})
                    : "if (!(" + check + ")) continue; " + filled(use, {{"v", v}});
    return code + "}\n";
}

// Structures and vectors ------------------------------------------------------------------------

std::string FormsProgram::members_in_turns(const Scope& scope) {
    const PlacedStructure made = placed_structure(scope);
    std::vector<std::string> members =
        made.is_vector ? std::vector<std::string>{"x", "y", "z", "w"} : std::vector<std::string>{"a", "b", "c", "d"};
    members.resize(made.members);
    const uint32_t changes = 1 + pick(made.members);
    const std::string factor = number(scope, 1);
    std::string body;
    for (uint32_t i = 0; i < changes; ++i) {
        const std::string member = pick(4) ? members[i] : one_of(members), other = one_of(members);
        body += made.place + "." + member + one_of(" *= ", " += ", " = ", " ^= ");
        // LLVM cannot take the first two members at once from what was stored.
        switch (pick(4)) {
        case 0: body += made.place + "." + other + " + " + one_of(scope.numbers); break;
        case 1: body += "(uint)(*(global const Longs*)&" + made.place + " >> 20)"; break;
        default: body += factor;
        }
        body += ";\n";
    }
    const std::string condition = varying_condition(scope), v = one_of(scope.numbers);
    std::string code = made.declaration + (pick(2) ? "if (" + condition + ") {\n" + body + "}\n" : body);
    return code + (pick(2) ? v + " += " + made.place + "." + one_of(members) + ";\n" : "") + "}\n";
}

// Vectors of the kernel's own, whose elements are mixed and taken from tables.
std::string FormsProgram::long_vector(const Scope& scope) {
    const uint32_t count = one_of("8", "16", "8", "4") == "8" ? 8 : 16;
    const std::string q = fresh("q"), n = std::to_string(count), v = one_of(scope.numbers),
                      shared = shared_number(scope), value = number(scope, 1);
    std::string code = "{\n";
    const std::string at = place(scope, code), type = one_of("uint", "uint", "ushort", "uchar");
    code += type + n + " " + q + " = convert_" + type + n + "(vload" + n + "(0, in + " + at + "));\n";
    const uint32_t steps = 1 + pick(3);
    for (uint32_t i = 0; i < steps; ++i) {
        const std::pair<const char*, const char*> tables[] = {
            {"bytes16", "15"}, {"bytes32", "31"}, {"bytes64", "63"}, {"words64", "63"}};
        const auto& [table, last] = tables[pick(std::size(tables))];
        const std::string condition = varying_condition(scope);
        switch (pick(5)) {
        case 0: {
            std::string elements;
            for (uint32_t e = 0; e < count; ++e) {
                const uint32_t from = pick(8) ? e : pick(count);
                elements += (e ? ", " : "") + std::string(table) + "[" + q + ".s" + "0123456789abcdef"[from] + " & " +
                            last + "]";
            }
            code += q + " ^= (" + type + n + ")(" + elements + ");\n";
            break;
        }
        case 1:
            code += q + " = " + q + " * (" + type + ")" + std::to_string(3 + pick(9)) + " ^ (" + type + ")(" + value +
                    ");\n";
            break;
        case 2:
            code += q + " = " + q + one_of(" >> ", " << ", " + ") + "(" + type + ")((" + shared + ") & 7);\n";
            break;
        case 3:
            code += "if (" + condition + ") " + q + " += " + q + ".s" + (count == 8 ? "10325476" : "1032547698badcfe") +
                    ";\n";
            break;
        default: code += q + " = max(" + q + ", (" + type + ")(" + value + ")) - min(" + q + ", (" + type + ")3);\n";
        }
    }
    const std::string at_end = std::string("0123456789abcdef").substr(pick(count), 1);
    return code + v + " += " + q + ".s0 ^ " + q + ".s3 * 5 ^ " + q + ".s7 * 7 ^ (uint)" + q + ".s" + at_end + ";\n}\n";
}

// Barriers --------------------------------------------------------------------------------------

// Numbers of several sizes, which live across different barriers, also from one iteration to the next.
std::string FormsProgram::numbers_across_barriers(const Scope& scope) {
    constexpr const char* barrier = "barrier(CLK_LOCAL_MEM_FENCE);\n";
    const std::string b = fresh("b"), i = fresh("i"), rounds = shared_number(scope);
    const auto type = [&] { return one_of("uint", "uint", "ushort", "ulong", "uchar", "bool"); };
    std::string code = "{\n";
    Scope inner = scope;
    std::vector<std::string> alive;
    const uint32_t stages = 2 + pick(4);
    for (uint32_t stage = 0; stage < stages; ++stage) {
        const uint32_t made = 1 + pick(2);
        for (uint32_t k = 0; k < made; ++k) {
            const std::string name = b + "_" + std::to_string(stage) + std::to_string(k);
            const std::string value = pick(3) ? number(inner, 2) : number(inner, 1) + " ^ s[(lid + 1) % size]";
            code += "const " + type() + " " + name + " = (" + value + ") >> 1;\n";
            alive.push_back(name);
        }
        code += barrier + std::string("s[lid] = ") + one_of(scope.numbers) + ";\n" + barrier;
        if (alive.size() > 2 && pick(2)) {
            const size_t used = pick(static_cast<uint32_t>(alive.size()));
            code += one_of(scope.numbers) + " += " + alive[used] + " * 3u ^ s[(lid + " + std::to_string(stage) +
                    ") % size];\n";
            alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(used));
        }
    }
    const std::string changing = b + "_c", kept = b + "_k", v = one_of(scope.numbers), w = one_of(scope.numbers);
    if (pick(2))
        code += type() + " " + changing + " = " + v + ", " + kept + " = " + w + ";\nfor (uint " + i + " = 0; " + i +
                " < ((" + rounds + ") & 3); ++" + i + ") {\n" + barrier + "s[lid] = " + changing + ";\n" + barrier +
                changing + " += s[(lid + 1) % size] ^ " + kept + ";\n" + barrier + kept + " = " + changing +
                " >> 1;\n}\n" + v + " ^= " + changing + " + " + kept + ";\n";
    for (const std::string& name : alive)
        code += one_of(scope.numbers) + " ^= " + name + ";\n";
    return code + barrier + "}\n";
}

}  // namespace polder::compiler::workgroup::test
