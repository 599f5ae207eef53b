// The statements, functions and kernels of workgroup_forms_program.h.
#include "workgroup_forms_program.h"

namespace polder::compiler::workgroup::test {

std::string forms_prelude() {
    std::string result =
        "typedef struct { uint a, b; } Two;\ntypedef struct { uint a, b, c; } Three;\n"
        "typedef struct { uint a, b, c, d; } Four;\ntypedef struct { ushort a; uchar b, c; uint d[3]; "
        "} __attribute__((may_alias)) Mixed;\n"
        "typedef ushort __attribute__((may_alias)) Halves;\ntypedef uint __attribute__((may_alias)) Parts;\n"
        "typedef ulong __attribute__((may_alias, aligned(4))) Longs;\n"
        "void copy_bytes(ARRAY uchar* to, const ARRAY uchar* from, uint n) { while "
        "(n--) *to++ = *from++; }\n"
        "void copy_global_bytes(ARRAY uchar* to, global const uchar* from, uint n) { while "
        "(n--) *to++ = *from++; }\n";
    struct Table {
        const char *type, *name;
        uint32_t size, limit;
    };
    constexpr Table tables[] = {{"uchar", "bytes16", 16, 256},   {"uchar", "bytes32", 32, 256},
                                {"char", "bytes48", 48, 128},    {"uchar", "bytes64", 64, 256},
                                {"char", "signed64", 64, 128},   {"uchar", "bytes80", 80, 256},
                                {"ushort", "words64", 64, 65536}};
    for (const Table& table : tables) {
        result += "constant " + std::string(table.type) + " " + table.name + "[] = {";
        for (uint32_t i = 0; i < table.size; ++i)
            result += std::to_string((i * i * 37 + i * table.size + 11) % table.limit) + ",";
        result += "};\n";
    }
    return result;
}

std::string FormsProgram::filled(std::string pattern, const std::vector<std::pair<std::string, std::string>>& values) {
    std::string result;
    for (size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] == '$' && i + 1 < pattern.size()) {
            for (const auto& [key, value] : values)
                if (key[0] == pattern[i + 1])
                    result += value;
            ++i;
        } else
            result += pattern[i];
    }
    return result;
}

// Statements ------------------------------------------------------------------------------------

std::string FormsProgram::read(const Scope& scope) {
    std::string code;
    const std::string at = place(scope, code), v = one_of(scope.numbers);
    const uint32_t kind = pick(8);
    if (kind < 5)
        return code + v + one_of(" += ", " = ", " ^= ") + "in[" + at + "];\n";
    if (kind == 5)
        return code + v + " += (in + (" + at + "))[" + one_of("0", "1", "-1") + "];\n";
    if (kind == 6)
        return code + v + " ^= bytes[(" + at + ") & 4095];\n";
    return code + "{ const uint4 q = vload4(0, in + (" + at + ")); " + v + " += q.x ^ q.y * 3 ^ q.z * 5 ^ q.w; }\n";
}

// Values in a small array, of which a loop uses less from round to round, or which are moved in it.
std::string FormsProgram::shrinking_array(const Scope& scope) {
    const uint32_t size = 3 + pick(9);
    const std::string a = fresh("a"), v = one_of(scope.numbers),
                      type = one_of("uint", "uint", "uchar", "ushort", "int", "float");
    std::string code = "{\nARRAY " + type + " " + a + "[" + std::to_string(size) + "];\n";
    std::string fill;
    const std::string at = place(scope, fill), w = number(scope, 1);
    const std::string unrolled = one_of("", "", "#pragma unroll 3\n", "#pragma unroll\n", "#pragma unroll 1\n");
    code += fill + unrolled + "for (int i = 0; i < " + std::to_string(size) + "; ++i) " + a + "[i] = ";
    code += scope.has_memory ? "(in[" + at + " + i] ^ " + w + " * i) & 1023u;\n"
                             : "(" + w + " * (i * 77 + 5)) >> 4 & 1023u;\n";
    const std::string rounds = one_of("3", "$s - 1", "$s / 2", "(int)(n % $s)", "(int)($v % $s)");
    const std::string leaves = pick(3) ? "" : "if (" + varying_condition(scope) + ") break; ";
    const char* const forms[] = {
        "for (int last = $s - 1; last > 0; --last) { $l for (int i = 0; i < last; ++i) if ($a[i] > $a[i + 1]) { const "
        "$t t = $a[i]; $a[i] = $a[i + 1]; $a[i + 1] = t; } }\n",
        "int last = $s - 1; for (int r = 0; r < $r; ++r) { $l for (int i = 0; i < last / 2; ++i) { const $t t = $a[i], "
        "o = $a[last - i]; $a[i] = min(t, o); $a[last - i] = max(t, o); }"
        " for (int i = 1; i < last; ++i) if ($a[i] < $a[0]) { const $t t = $a[i]; $a[i] = $a[0]; $a[0] = t; } if (last "
        "> 1) --last; }\n",
        "for (int i = 1; i < $s; ++i) { $l const $t t = $a[i]; int j = i; while (j > 0 && $a[j - 1] > t) { $a[j] = "
        "$a[j - 1]; --j; } $a[j] = t; }\n",
        "for (int r = 0; r < $r; ++r) { $l const $t t = $a[0]; $u for (int i = 0; i < $s - 1; ++i) $a[i] = $a[i + 1]; "
        "$a[$s - 1] = t + 1; }\n",
        "int first = 0, last = $s; while (last - first > 1) { $l for (int i = first; i + 1 < last; i += 2) if ($a[i] > "
        "$a[i + 1]) $a[i] = $a[i + 1]; ++first; if (first & 1) --last; }\n",
        "int last = $s; do { $l --last; $a[last / 2] += $a[last]; $a[last] = 1; } while (last > (int)(n & 1));\n",
        "int used = $s; for (int r = 0; r < 9; ++r) { $l $u for (int i = 0; i < used; ++i) $a[i] = ($a[i] + $a[used - "
        "1 - i]) / 2; used -= used > 2 ? 2 : 0; }\n",
        "for (int d = $s / 2; d > 0; d /= 2) { $l for (int i = 0; i + d < $s; ++i) if ($a[i] > $a[i + d]) { const $t t "
        "= $a[i + d]; $a[i + d] = $a[i]; $a[i] = t; } }\n",
    };
    const std::string last = std::to_string(size);
    const std::string times = filled(rounds, {{"s", last}, {"v", v}});
    code += filled(forms[pick(std::size(forms))], {{"s", last},
                                                   {"a", a},
                                                   {"t", type},
                                                   {"r", times},
                                                   {"l", leaves},
                                                   {"u", unrolled.empty() ? "" : "\n" + unrolled}});
    const std::string index = below(scope, size);
    code += pick(2) ? v + " += (uint)" + a + "[" + std::to_string(size / 2) + "] + 3 * (uint)" + a + "[" +
                          std::to_string(size - 1) + "] + 5 * (uint)" + a + "[0];\n"
                    : v + " ^= (uint)" + a + "[" + index + "];\n";
    return code + "}\n";
}

std::string FormsProgram::look_up(const Scope& scope) {
    const std::string v = one_of(scope.numbers);
    const std::pair<const char*, uint32_t> tables[] = {
        {"bytes16", 16}, {"bytes32", 32}, {"bytes48", 48}, {"bytes64", 64}, {"signed64", 64},
        {"bytes80", 80}, {"words64", 64}, {"bytes", 64},   {"bytes", 16},   {"(bytes + 100)", 32}};
    const auto& [table, size] = tables[pick(scope.has_memory ? 10 : 7)];
    const std::string index = below(scope, size);
    const std::string element = table + ("[" + index + "]");
    switch (pick(4)) {
    case 0: return v + " = " + v + " << 8 | (uchar)" + element + ";\n";
    case 1: return v + " += bytes64[(" + element + " + " + v + ") & 63];\n";
    case 2:
        return "{ const uint e = " + v + "; " + v +
               " = bytes64[e >> 26] | bytes64[e >> 20 & 63] << 8 | bytes64[e >> 14 & 63] << 16 | (uint)(uchar)" +
               element + " << 24; }\n";
    default: return v + one_of(" += ", " ^= ", " -= ") + "(uint)" + element + ";\n";
    }
}

std::string FormsProgram::index_of_structure(const Scope& scope, uint32_t each) {
    if (!side_by_side_)
        return below(scope, each);
    // A quarter of the words are for own_words_again().
    const uint32_t rows = each * 3 / 4;
    const std::string row = pick(3) ? std::to_string(pick(rows)) : pick(2) ? "(n & 1)" : below(scope, rows);
    return row + " * items + at";
}

FormsProgram::PlacedStructure FormsProgram::placed_structure(const Scope& scope) {
    struct Type {
        const char* name;
        uint32_t each, members;
    };
    constexpr Type types[] = {{"Two", 8, 2},   {"Three", 5, 3}, {"Four", 4, 4},
                              {"uint2", 8, 2}, {"uint4", 4, 4}, {"Mixed", 4, 3}};
    const Type& type = types[side_by_side_ ? *side_by_side_ : pick(6)];
    const std::string index = index_of_structure(scope, type.each), name = fresh("t");
    // Blocks may end 48 words behind the last work-item's.
    return {.type = type.name,
            .name = name,
            .declaration = "{ global " + std::string(type.name) + "* " + name + " = (global " + type.name +
                           "*)(own + " + (side_by_side_ ? "4 * items + 64" : "mine * 16") + ");\n",
            .place = name + "[" + index + "]",
            .members = type.members,
            .is_vector = type.name[0] == 'u',
            .is_mixed = type.name[0] == 'M'};
}

std::string FormsProgram::structure(const Scope& scope) {
    const PlacedStructure made = placed_structure(scope);
    const std::string& place = made.place;
    const uint32_t each = made.type == "Three" ? 5 : made.members == 2 ? 8 : 4;
    const std::string other = index_of_structure(scope, each), v = one_of(scope.numbers), w = one_of(scope.numbers);
    const std::string a = made.is_vector ? "x" : "a", b = made.is_vector ? "y" : "b",
                      c = made.is_mixed ? "d[" + below(scope, 3) + "]" : a;
    const std::string first = v + " += " + place + "." + a + " * 3 + " + place + "." + b + ";\n";
    const std::string value = number(scope, 1), second = pick(2) ? place + "." + b + " ^= " + w + "; " : "";
    const std::string store = place + "." + a + " = " + value + "; " + second + place + "." + c + " += 5;\n";
    const std::string whole =
        made.type + " whole = " + place + "; whole." + c + " += " + w + "; " + made.name + "[" + other + "] = whole;\n";
    const std::string condition = varying_condition(scope);
    const std::string body = pick(3) == 0 ? whole : pick(2) ? first + store : store + first;
    const std::string code = made.declaration + (pick(3) ? "if (" + condition + ") {\n" + body + "}\n" : body);
    return code + (pick(3) ? "" : first) + "}\n";
}

// A word of the work-item's own; `index` is below 4 if structures are side by side, else below 16.
std::string FormsProgram::own_word(const std::string& index) {
    const std::string array = pick(has_alias_ ? 2 : 1) ? "alias" : "own";
    if (!side_by_side_)
        return array + "[mine * 16 + " + index + "]";
    switch (own_words_) {
    case OwnWords::rows: return array + "[" + index + " * items + at]";
    case OwnWords::structures:
        return array + one_of("[at * 4 + ", "[((uint)at * 4u & 0xffff) + ", "[(int)at * 4 + ", "[(at << 2) + ") +
               index + "]";
    default:
        return array +
               one_of("[at / 16 * 64 + at % 16 + ", "[((uint)at / 16u) * 64u + (uint)at % 16u + ",
                      "[((int)at / 16) * 64 + (int)at % 16 + ", "[(at << 2 & -64UL) + (at & 15) + ") +
               index + " * 16]";
    }
}

// Words of the work-item's own that are read behind stores.
std::string FormsProgram::own_words_again(const Scope& scope) {
    const uint32_t count = side_by_side_ ? 4 : 16;
    const auto index = [&] { return pick(3) ? std::to_string(pick(count)) : below(scope, count); };
    const std::string i = index(), j = index(), v = one_of(scope.numbers), value = number(scope, 2);
    std::string code = own_word(i);
    code += one_of(" = ", " ^= ", " += ") + value + ";\n";
    if (pick(3) == 0) {
        code += own_word(std::to_string(pick(4))) + " = " + v + ";\n";
        code += own_word(std::to_string(pick(4))) + " ^= 3;\n";
    }
    const std::string condition = varying_condition(scope);
    if (pick(2))
        code = "if (" + condition + ") {\n" + code + "}\n";
    code += v + " += " + own_word(j) + ";\n";
    if (pick(2)) {
        code += own_word(j) + " = " + v + ";\n";
        code += v + " ^= " + own_word(i) + ";\n";
    }
    return code;
}

std::string FormsProgram::choose(const Scope& scope) {
    const bool is_shared = pick(2) != 0;
    const std::string condition = is_shared ? shared_condition(scope) : varying_condition(scope);
    Scope inner = scope;
    ++inner.depth;
    inner.meets_barriers = scope.meets_barriers && is_shared;
    if (scope.meets_barriers && !inner.meets_barriers)
        inner.loops = 0;
    std::string code = "if (" + condition + ") {\n" + block(inner, 1 + pick(3)) + "}";
    if (pick(3))
        code += " else {\n" + block(inner, 1 + pick(3)) + "}";
    return code + "\n";
}

std::string FormsProgram::select_case(const Scope& scope) {
    Scope inner = scope;
    ++inner.depth;
    inner.meets_barriers = false;
    inner.loops = 0;
    const std::string value = pick(3) ? shared_number(scope) : number(scope, 1);
    std::string code = "switch ((" + value + ") & 7) {\n";
    const uint32_t cases = 2 + pick(4);
    for (uint32_t i = 0; i < cases; ++i) {
        code += "case " + std::to_string(i) + ": " + block(inner, 1 + pick(2));
        code += pick(3) ? "break;\n" : "";
    }
    return code + "default: " + block(inner, 1) + "}\n";
}

std::string FormsProgram::loop(const Scope& scope) {
    const bool is_shared = pick(2) != 0;
    const std::string t = fresh("i"), length = is_shared ? shared_number(scope) : number(scope, 1);
    Scope inner = scope;
    ++inner.depth;
    inner.meets_barriers = scope.meets_barriers && is_shared;
    inner.loops = scope.meets_barriers && !is_shared ? 1 : scope.loops + 1;
    inner.places.push_back(t);
    std::string code;
    if (!is_shared && !scope.is_function && scope.loops == 0 && pick(4) == 0) {  // lanes leave it in their order
        code =
            one_of("for (int $t = 0; $t < (int)lid; ++$t) {\n", "for (int $t = (int)lid; $t < (int)size; $t += 2) {\n",
                   "for (int $t = (int)size - 1; $t >= (int)lid; --$t) {\n");
        code = filled(code, {{"t", t}});
    } else if (pick(3))
        code =
            "for (int " + t + " = 0; " + t + " < (int)((" + length + ") & " + one_of("3", "7") + "); ++" + t + ") {\n";
    else {
        const std::string bound = fresh("e");
        code = "const int " + bound + " = (int)((" + length + ") & 7);\nfor (int " + t + " = " + bound + "; " + t +
               " > 0; " + t + " -= " + one_of("1", "2", "3") + ") {\n";
        code = "{ " + code;
        return code + block(inner, 1 + pick(3)) + "} }\n";
    }
    return code + block(inner, 1 + pick(3)) + "}\n";
}

// Numbers of local memory that all work-items read, and that live across other barriers.
std::string FormsProgram::group_number(const Scope& scope) {
    const std::string g = fresh("g"), v = one_of(scope.numbers), w = one_of(scope.numbers), t = fresh("i");
    const std::string shared = shared_number(scope), value = number(scope, 1), k = std::to_string(pick(9));
    Scope inner = scope;
    ++inner.depth;
    inner.shared.push_back(g);
    std::string code = "{\nuint $g = $s;\nbarrier(CLK_LOCAL_MEM_FENCE);\ns[lid] = $e;\nbarrier(CLK_LOCAL_MEM_FENCE);\n";
    switch (pick(4)) {
    case 0: code += "$g = s[$s % size];\n"; break;
    case 1: code += "for (uint i = 0; i < size; ++i) $g = max($g, s[i]);\n"; break;
    case 2: code += "if (($s & 1) != 0) $g += s[0]; else $g ^= s[size - 1];\n"; break;
    default: code += "$v ^= s[(lid + $k) % size]; $g = s[0] & 7;\n"; break;
    }
    code += "barrier(CLK_LOCAL_MEM_FENCE);\n";
    code = filled(code, {{"g", g}, {"s", shared}, {"e", value}, {"v", v}, {"k", k}});
    const std::string body = block(inner, 1 + pick(2));
    if (pick(2))
        code += "for (uint " + t + " = 0; " + t + " < (" + shared + " & 3); ++" + t +
                ") {\nbarrier(CLK_LOCAL_MEM_FENCE);\ns[lid] = " + w + ";\nbarrier(CLK_LOCAL_MEM_FENCE);\n" + g +
                one_of(" += ", " = ") + "s[" + t + " % size];\nbarrier(CLK_LOCAL_MEM_FENCE);\n" + body + "}\n";
    else
        code += body;
    return code + w + " += " + g + ";\n}\n";
}

std::string FormsProgram::statement(const Scope& scope) {
    if (!functions_.empty() && pick(5) == 0)
        return call(scope);
    if (scope.depth < 3 && pick(4) == 0)
        return memory_statement(scope);
    if (scope.depth < 3 && pick(6) == 0)
        return shape_statement(scope);
    if (scope.depth < 3 && pick(6) == 0)
        return pass_statement(scope);
    if (scope.depth < 3 && pick(8) == 0)
        return edge_statement(scope);
    const uint32_t choice = pick(scope.depth < 3 ? 30 : 20);
    if (choice < 4) {
        const std::string v = one_of(scope.numbers), value = number(scope, 3);
        return v + " = " + value + ";\n";
    }
    if (choice < 6)
        return shrinking_array(scope);
    if (choice < 9)
        return look_up(scope);
    if (choice < 12 && scope.has_memory)
        return read(scope);
    if (choice < 14 && scope.has_memory && !scope.is_function)
        return structure(scope);
    if (choice < 18 && scope.has_memory && !scope.is_function)
        return own_words_again(scope);
    if (choice == 18 && scope.meets_barriers)
        return group_number(scope);
    if (choice == 19 && scope.loops > 0) {
        const std::string condition = scope.meets_barriers ? shared_condition(scope) : varying_condition(scope);
        return "if (" + condition + ") " + one_of("break", "continue") + ";\n";
    }
    if (choice < 20)
        return read(scope);
    if (choice < 24)
        return choose(scope);
    if (choice < 27)
        return loop(scope);
    if (choice == 27)
        return select_case(scope);
    if (choice == 28 && scope.meets_barriers)
        return group_number(scope);
    const std::string v = one_of(scope.numbers), condition = varying_condition(scope), value = number(scope, 2);
    if (scope.is_function)
        return "if (" + condition + ") { " + v + " += " + value + "; RETURN; }\n";
    return scope.meets_barriers ? shrinking_array(scope)
                                : "if (" + condition + ") { out[at] = " + value + "; return; }\n";
}

std::string FormsProgram::block(const Scope& scope, uint32_t count) {
    std::string result;
    for (uint32_t i = 0; i < count; ++i)
        result += statement(scope);
    return result;
}

// Functions -------------------------------------------------------------------------------------

// Kinds: 0: numbers, a place and a shared number. 1: a private array. 2: a structure by value, which returns one. 3: two pointers to private words, one of them
// restrict. 4: pointers to global and local memory, and to words of the work-item that it writes.
std::string FormsProgram::function() {
    const uint32_t kind = pick(side_by_side_ ? 4 : 5);
    const std::string name = "FUNCTION(" + prefix_ + std::to_string(functions_.size()) + ")";
    Scope scope;
    scope.is_function = true;
    scope.depth = 1;
    scope.numbers = {"x", "y"};
    scope.shared = {"n", "m"};
    scope.places = {"p"};
    std::string head = "int p, uint n, uint m, int width, int height, int reach, global const uint* RESTRICT in, "
                       "global const uchar* bytes",
                result, start, end;
    switch (kind) {
    case 0:
        head = "uint x, uint y, " + head;
        result = "uint";
        end = "x + 3 * y";
        break;
    case 1:
        head = "private ARRAY uint* a, " + head;
        result = "void";
        start = "uint x = a[0], y = a[m & 3];\n";
        scope.numbers.insert(scope.numbers.end(), {"a[1]", "a[(x ^ m) & 3]"});
        break;
    case 2:
        head = "Four f, " + head;
        result = "Four";
        start = "uint x = f.a, y = f.b;\n";
        scope.numbers.insert(scope.numbers.end(), {"f.c", "f.d"});
        end = "(Four){x, y, f.c, f.d}";
        break;
    case 3:
        head = "private ARRAY uint* RESTRICT a, private const ARRAY uint* RESTRICT b, " + head;
        result = "uint";
        start = "uint x = b[0], y = b[m & 1];\n";
        scope.numbers.insert(scope.numbers.end(), {"a[0]", "a[1]"});
        end = "x ^ y * b[1] ^ a[0]";
        break;
    default:
        head = "global const uint* other, local const uint* table, global uint* mine, " + head;
        result = "uint";
        start = "uint x = other[0] + table[m & 1], y = other[-1];\n";
        scope.numbers.insert(scope.numbers.end(), {"mine[3]", "mine[(x ^ m) & 15]"});
        end = "x + other[y & 3] + table[x & 1]";
        break;
    }
    const std::string body = block(scope, 2 + pick(3));
    std::string code =
        "#define RETURN return " + end + "\n" + result + " " + name + "(" + head + ") {\n" + start + body;
    if (kind == 1)
        code += "a[x & 3] ^= y;\n";
    code += end.empty() ? "}\n" : "return " + end + ";\n}\n";
    functions_.push_back({name, kind});
    return code + "#undef RETURN\n";
}

std::string FormsProgram::call(const Scope& scope) {
    const Function function = functions_[pick(static_cast<uint32_t>(functions_.size()))];
    const std::string v = one_of(scope.numbers), w = one_of(scope.numbers), array = fresh("a");
    const std::string p = one_of(scope.places), m = pick(2) ? shared_number(scope) : number(scope, 1),
                      n = pick(3) ? "n" : one_of(scope.shared);
    const std::string rest = p + ", " + n + ", " + m + ", width, height, reach, in, bytes)";
    const std::string value = number(scope, 1), i = below(scope, 4);
    const std::string filled_array =
        "ARRAY uint " + array + "[8] = {" + v + ", " + w + ", " + value + ", 3, 4, " + m + ", 6, 7};\n";
    switch (function.kind) {
    case 0: return v + one_of(" = ", " += ") + function.name + "(" + value + ", " + w + ", " + rest + ";\n";
    case 1:
        return "{ " + filled_array + function.name + "(" + array + one_of("", " + 3", " + " + i) + ", " + rest + ";\n" +
               v + " ^= " + array + "[" + i + "] + " + array + "[4] * 3 + " + array + "[7]; }\n";
    case 2:
        // A name of its own: in a function of a structure, the numbers may be members of `f`.
        return "{ Four made = {" + v + ", " + w + ", " + value + ", 9}; made = " + function.name + "(made, " + rest +
               "; " + v + " += made.a ^ made.b * 3 ^ made.c * 5 ^ made.d; }\n";
    case 3:
        return "{ " + filled_array + v + " += " + function.name + "(" + array +
               one_of(", " + array + " + 2, ",
                      " + 4, " + array + " + " + one_of("0", "1", "2", std::string("(n & 1)")) + ", ") +
               rest + ";\n" + v + " ^= " + array + "[0] + " + array + "[5] * 3; }\n";
    default: {
        if (scope.is_function)
            return v + " += 1;\n";
        std::string code;
        const std::string at = place(scope, code), table = !has_barriers_ ? "2 * lid" : pick(2) ? "lid" : "(n & 1)";
        return code + v + " ^= " + function.name + "(in + (" + at + "), s + " + table + ", own + mine * 16, " + rest +
               ";\n";
    }
    }
}

// Kernels ---------------------------------------------------------------------------------------

std::string FormsProgram::text(const std::string& name) {
    prefix_ = name + "_";
    std::string result;
    has_alias_ = pick(2) != 0;
    if (pick(2))
        side_by_side_ = pick(6);
    own_words_ = static_cast<OwnWords>(pick(3));
    const uint32_t functions = pick(3);
    for (uint32_t i = 0; i < functions; ++i)
        result += function();
    has_barriers_ = pick(3) == 0;
    Scope scope;
    scope.meets_barriers = has_barriers_;
    scope.numbers = {"v0", "v1", "v2", "v3"};
    scope.shared = {"n", "m0", "m1"};
    scope.places = {"x", "y", "x", "lx", "both"};
    result += "kernel void " + name + "(global const uint* RESTRICT middle, global uint* RESTRICT out, global uint* " +
              (has_alias_ ? "own" : "RESTRICT own") +
              ", global uint* alias, global const uchar* RESTRICT bytes, local uint* s, int width, int height, uint n, "
              "int reach, uint stage) {\n"
              "global const uint* in = middle + 16384;\nconst size_t at = get_global_linear_id();\nconst uint lid = "
              "get_local_linear_id();\n"
              "const size_t items = get_global_size(0) * get_global_size(1);\n"
              "const uint size = get_local_size(0) * get_local_size(1);\n";
    result += one_of("const int x = get_global_id(0), y = get_global_id(1);\n",
                     "const uint x0 = get_global_id(0); const int x = (int)x0 - 1, y = (int)get_global_id(1) - 1;\n",
                     "const int x = (int)(get_global_id(0) & 0xffff), y = (short)get_global_id(1);\n");
    // Where the words of a work-item are, if not side by side.
    result += "const size_t mine = " + one_of("at", "at", "at ^ 1", "(at & ~7UL) + (at * 3 & 7)") + ";\n";
    result += "const int lx = get_local_id(0), both = x + y;\nout[at] = 7;\n";
    result += has_barriers_ ? "s[lid] = lid * 5;\ns[size] = s[size + 1] = 3;\nbarrier(CLK_LOCAL_MEM_FENCE);\n"
                            : "s[2 * lid] = lid * 5; s[2 * lid + 1] = x;\n";
    result += "s[128 + lid] = x;\n";
    if (pick(2))
        result += "if (" +
                  one_of("x >= width", "x < 1 || y < 1 || x >= width || y >= height", "y * 3 + x > width",
                         "(in[x] & 1) != 0", "x > reach") +
                  ") return;\n";
    result += "uint v0 = lid, v1 = in[x], v2 = in[both] >> 5, v3 = x;\nuint m0 = n * 3 + 1, m1 = in[n & 7];\n";
    result += block(scope, 3 + pick(4));
    return result + "out[at] = v0 + 3 * v1 + 5 * v2 + 7 * v3 + 11 * m1;\n}\n";
}

}  // namespace polder::compiler::workgroup::test
