// Loops of which LLVM makes vectors use numbers that wrap around at a few bits, beside wider ones.
#include "compiler_support.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace polder::compiler::test {
namespace {

constexpr uint32_t count = 400, begin = 3;

using Words = std::vector<uint32_t>;

struct Case {
    const char* expression;  // of iteration i, with b = begin
    std::function<uint32_t(const Words&, uint32_t)> expected;
};

const Case cases[] = {
    {"in[b + i] + in[i & 3]", [](const Words& in, uint32_t i) { return in[begin + i] + in[i & 3U]; }},
    {"in[(b + i) & 1023] + in[i & 15]", [](const Words& in, uint32_t i) { return in[begin + i] + in[i & 15U]; }},
    {"in[(b + i + (i & 3)) & 1023]", [](const Words& in, uint32_t i) { return in[begin + i + (i & 3U)]; }},
    {"in[b + 2 * i] ^ in[b + (uchar)(i * 3)]",
     [](const Words& in, uint32_t i) { return in[begin + 2 * i] ^ in[begin + (i * 3U & 255U)]; }},
    {"in[b + i * 2] + in[(i & 15) + 5] * in[i & 63]",
     [](const Words& in, uint32_t i) { return in[begin + i * 2] + in[(i & 15U) + 5] * in[i & 63U]; }},
};

// LLVM 22 took `b + i` fitting into 32 bits for `i` fitting into 2, so element 4 had a wrong number.
TEST(NarrowWraps, BesideWiderNumbers_AreRight) {
    Words in(1024);
    for (uint32_t i = 0; i < in.size(); ++i)
        in[i] = i * 2654435761U;
    for (const std::string counter : {"uint", "ulong"})
        for (const Case& tested : cases) {
            const Outcome built =
                build("kernel void k(global const uint* restrict in, global uint* restrict out, uint b, " + counter +
                      " n) {\n  for (" + counter +
                      " c = 0; c < n; ++c) { const uint i = c; out[c] = " + tested.expression + "; }\n}");
            ASSERT_EQ(built.status, Status::success) << built.log;
            Words out(count);
            Launch launch{built, "k"};
            launch.set(0, in.data()).set(1, out.data()).set(2, begin);
            if (counter == "uint")
                launch.set(3, count);
            else
                launch.set(3, uint64_t{count});
            launch.run(1, 1);
            for (uint32_t i = 0; i < count; ++i)
                ASSERT_EQ(out[i], tested.expected(in, i)) << tested.expression << ", " << counter << ", element " << i;
        }
}

}  // namespace
}  // namespace polder::compiler::test
