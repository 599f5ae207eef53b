// Random programs of workgroup_random_program.h as OpenCL C. Plain functions.
#pragma once

#include "workgroup_random_program.h"

#include <sstream>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {

inline std::string text(const Expression& e) {
    const auto binary = [&](const char* op) {
        return "(" + text(e.operands[0]) + " " + op + " " + text(e.operands[1]) + ")";
    };
    switch (e.kind) {
    case Expression::constant: return std::to_string(e.value) + "u";
    case Expression::private_variable: return "v" + std::to_string(e.value);
    case Expression::uniform_variable: return "u" + std::to_string(e.value);
    case Expression::argument: return "n";
    case Expression::local_id: return "(uint)get_local_id(" + std::to_string(e.value) + ")";
    case Expression::group_id: return "(uint)get_group_id(" + std::to_string(e.value) + ")";
    case Expression::local_size: return "(uint)get_local_size(" + std::to_string(e.value) + ")";
    case Expression::array: return "ELEMENT(a, " + text(e.operands[0]) + ")";
    case Expression::add: return binary("+");
    case Expression::multiply: return "PRODUCT(" + text(e.operands[0]) + ", " + text(e.operands[1]) + ")";
    case Expression::exclusive_or: return binary("^");
    case Expression::less: return "(uint)" + binary("<");
    case Expression::both: return binary("&");
    }
    return {};
}

inline void write(std::ostream& out, const std::vector<Statement>& block) {
    for (const Statement& s : block) {
        const std::string t = std::to_string(s.target);
        const auto e = [&](size_t i) { return text(s.expressions[i]); };
        switch (s.kind) {
        case Statement::assign: out << "ASSIGN(v" << t << ", " << e(0) << ");\n"; break;
        case Statement::assign_uniform: out << "u" << t << " = " << e(0) << ";\n"; break;
        case Statement::assign_array: out << "STORE(a, " << e(0) << ", " << e(1) << ");\n"; break;
        case Statement::exchange: out << "v" << t << " = exchange(s, " << e(0) << ", " << e(1) << ");\n"; break;
        case Statement::broadcast: out << "u" << t << " = broadcast(s, " << e(0) << ");\n"; break;
        case Statement::sub_group:
            out << "v" << t << " = sub_group_" << s.operation << "(s, " << e(0) << ", " << e(1) << ");\n";
            break;
        case Statement::choose:
            out << "if (" << e(0) << ") {\n";
            write(out, s.body);
            out << "}";
            if (!s.otherwise.empty()) {
                out << " else {\n";
                write(out, s.otherwise);
                out << "}";
            }
            out << "\n";
            break;
        case Statement::keep:
        case Statement::keep_loaded:
            // What is stored is overwritten at the end, and keeps LLVM from executing a branch for all work-items. It does
            // not divide where the test fails, either: for it, n + 1 can be zero.
            out << "{\nuint k" << t << ";\n";
            if (s.kind == Statement::keep)
                out << "if (" << e(0) << ") out[at] = k" << t << " = " << e(1) << " / (n + 1u);\n";
            else
                out << "broadcast(s, " << e(1) << ");\nif (" << e(0) << ") out[at] = k" << t << " = s[0];\n"
                    << "barrier(CLK_LOCAL_MEM_FENCE);\n";
            write(out, s.body);
            out << "if (" << e(0) << ") out[at] = v" << s.operation << " ^= k" << t << ";\n}\n";
            break;
        case Statement::loop:
            out << "for (uint t" << t << " = 0; t" << t << " < (" << e(0) << " & 3); ++t" << t << ") {\n";
            write(out, s.body);
            out << "}\n";
            break;
        case Statement::forever:
            out << "for (uint t" << t << " = 0;; ++t" << t << ") {\nif (t" << t << " > (" << e(0) << " & 3)) break;\n";
            write(out, s.body);
            out << "}\n";
            break;
        case Statement::leave: out << "break;\n"; break;
        case Statement::next: out << "continue;\n"; break;
        case Statement::finish: out << "{ out[at] = " << e(0) << " + " << t << "; return; }\n"; break;
        }
    }
}

// Which calls of functions that are not inlined a kernel has. `rare`: of a cold one, for products. `long_functions`: of several, for products and for
// what reads and writes private variables.
enum class Calls : uint8_t { none, rare, long_functions };

inline std::string kernel_text(const std::vector<Statement>& program, const std::string& name, Calls calls,
                               unsigned sub_group_size) {
    std::ostringstream out;
    const std::string prefix = calls == Calls::long_functions ? "called_" : "plain_";
    out << "#undef PRODUCT\n#undef ASSIGN\n#undef STORE\n#undef ELEMENT\n"
        << "#define PRODUCT(a, b) " << (calls == Calls::rare ? "rare_" : prefix) << "product(a, b)\n"
        << "#define ASSIGN(v, x) " << prefix << "assign(&v, x)\n"
        << "#define STORE(a, i, x) " << prefix << "store(a, i, x)\n"
        << "#define ELEMENT(a, i) " << prefix << "element(a, i)\n";
    if (sub_group_size > 0)
        out << "__attribute__((intel_reqd_sub_group_size(" << sub_group_size << ")))\n";
    out << "kernel void " << name << "(global uint* out, local uint* s, uint n) {\n"
        << "size_t at = get_global_linear_id();\nuint a[4] = {1, 2, 3, 4};\n"
        << "s[get_local_linear_id()] = 0;\n";
    for (size_t i = 0; i < private_count; ++i)
        out << "uint v" << i << " = get_local_linear_id() * " << i + 1 << ";\n";
    for (size_t i = 0; i < uniform_count; ++i)
        out << "uint u" << i << " = n + " << i << ";\n";
    write(out, program);
    out << "out[at] = v0 + 3 * v1 + 5 * v2 + 7 * v3 + 11 * v4 + 13 * u0 + 17 * u1 + 19 * u2 + a[0] + 23 * a[1] + 29 * "
           "a[2] + 31 * a[3];\n}\n";
    return out.str();
}

inline constexpr const char* helpers = R"(
#define plain_product(a, b) ((a) * (b))
#define plain_assign(v, x) *(v) = (x)
#define plain_store(a, i, x) (a)[(i) & 3] = (x)
#define plain_element(a, i) (a)[(i) & 3]
// A loop that work-items leave at different times.
uint called_product(uint a, uint b) {
    uint product = 0;
    for (; b != 0; b >>= 1, a <<= 1)
        product += b & 1 ? a : 0;
    return product;
}
uint called_element(const private uint* a, uint i) { return a[i & 3]; }
// Returns early, has an array of its own, and calls another function with it.
void called_store(private uint* a, uint i, uint x) {
    uint own[4];
    for (uint k = 0; k < 4; ++k) own[k] = a[k];
    own[i & 3] = x;
    if (x & 1) {
        for (uint k = 0; k < 4; ++k) a[k] = own[k];
        return;
    }
    a[i & 3] = called_element(own, i);
}
void called_assign(private uint* v, uint x) {
    if (*v > x) { *v = called_product(x, 1); return; }
    for (*v = 0; x > 3; x >>= 2, *v += 1) if ((x & 3) != 0) break;
    uint shift = *v;
    *v = x << 2 * shift;
}
__attribute__((noinline, cold)) uint rare_product(uint a, uint b) {
    uint product = 0;
    for (uint bit = 0; bit < 32; ++bit)  // so that LLVM does not know the result
        product += b >> bit & 1 ? a << bit : 0;
    return product;
}
uint exchange(local uint* s, uint v, uint k) {
    uint size = get_local_size(0) * get_local_size(1) * get_local_size(2);
    barrier(CLK_LOCAL_MEM_FENCE);
    s[get_local_linear_id()] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    return s[(get_local_linear_id() + (k & 15)) % size];
}
uint broadcast(local uint* s, uint v) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_linear_id() == 0) s[0] = v & 7;
    barrier(CLK_LOCAL_MEM_FENCE);
    return s[0];
}
)";

}  // namespace polder::compiler::workgroup::test
