// Counts the instructions of a call that an Intel processor would hand to its microcode, which takes some 150 cycles: products, quotients and
// roots with a subnormal operand or result. Sums, comparisons, minima and conversions of integers take their usual time there.
//
// The exceptions for these operands and results are enabled for the calling thread: each such instruction raises SIGFPE, whose handler counts
// it by its opcode, disables the exceptions and steps over it. x86-64 with Linux only.
#pragma once

#include <functional>

namespace polder::math {

struct SubnormalCounts {
    unsigned products = 0;  // also quotients, roots and fused operations
    unsigned scalings = 0;  // vscalef: whether it takes long depends on the processor
    unsigned others = 0;
};

bool can_count_subnormals();
SubnormalCounts count_subnormals(const std::function<void()>& call);

}  // namespace polder::math
