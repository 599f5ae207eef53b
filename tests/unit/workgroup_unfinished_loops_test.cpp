// Kernels with many barriers have as many loops over work-items, for which the function is analysed as seldom as possible.
#include "targets/host/workgroup/vectorizer/preparation/unfinished_loops.h"
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

constexpr int steps = 40;
constexpr size_t items = 160;
constexpr int32_t m = 3;

std::string step(int number) {
    return "    barrier(CLK_LOCAL_MEM_FENCE);\n"
           "    x += t[(l + " +
           std::to_string(number) +
           ") % n];\n"
           "    barrier(CLK_LOCAL_MEM_FENCE);\n"
           "    t[l] = x * 3 + " +
           std::to_string(number) + ";\n";
}

// `between`: executed in the middle.
std::string kernel_with(const std::string& between) {
    std::string source = "kernel void k(global int* a, int m, local int* t) {\n"
                         "    int g = get_global_id(0), l = get_local_id(0), n = get_local_size(0), x = 0;\n"
                         "    t[l] = a[g];\n";
    for (int i = 0; i < steps; ++i)
        source += (i == steps / 2 ? between : "") + step(i);
    return source + "    a[g] = x;\n}";
}

// `between` gets a work-item's x and local id.
void expect_right(const Compiled& program, const auto& between) {
    for (const size_t local : {size_t{8}, size_t{20}, size_t{32}, items}) {
        std::vector<int32_t> found(items), expected;
        std::iota(found.begin(), found.end(), 5);
        for (size_t group = 0; group < items; group += local) {
            std::vector<uint32_t> t(local), x(local);
            for (size_t l = 0; l < local; ++l)
                t[l] = static_cast<uint32_t>(found[group + l]);
            for (uint32_t i = 0; i < steps; ++i) {
                if (i == steps / 2)
                    for (size_t l = 0; l < local; ++l)
                        between(x[l], static_cast<uint32_t>(l));
                for (size_t l = 0; l < local; ++l)
                    x[l] += t[(l + i) % local];
                for (size_t l = 0; l < local; ++l)
                    t[l] = x[l] * 3 + i;
            }
            for (const uint32_t value : x)
                expected.push_back(static_cast<int32_t>(value));
        }
        program.run({1, {items, 1, 1}, {local, 1, 1}},
                    Arguments().add(found.data()).add(m).add_local(local * sizeof(int)));
        EXPECT_EQ(found, expected) << "groups of " << local;
    }
}

// `count` loops with a tag, one after the other. The last one has a loop inside.
std::string tagged_loops_in_a_row(int count) {
    std::string text = "define void @f(i64 %n) {\n  br label %loop0\n";
    for (int i = 0; i < count; ++i) {
        const auto name = [&](const std::string& value) { return "%" + value + std::to_string(i); };
        const std::string before = i == 0 ? "%0" : "%loop" + std::to_string(i - 1);
        const std::string next = i + 1 == count ? "%outer" : "%loop" + std::to_string(i + 1);
        text += name("loop").substr(1) + ":\n  " + name("i") + " = phi i64 [ 0, " + before + " ], [ " + name("next") +
                ", " + name("loop") + " ]\n  " + name("next") + " = add i64 " + name("i") + ", 1\n  " + name("done") +
                " = icmp eq i64 " + name("next") + ", %n\n  br i1 " + name("done") + ", label " + next + ", label " +
                name("loop") + ", !llvm.loop !" + std::to_string(2 * i) + "\n";
    }
    text += "outer:\n  br label %inner\ninner:\n  br i1 poison, label %latch, label %inner\n"
            "latch:\n  br i1 poison, label %end, label %outer, !llvm.loop !" +
            std::to_string(2 * count) + "\nend:\n  ret void\n}\n";
    for (int i = 0; i <= count; ++i) {
        const std::string own = "!" + std::to_string(2 * i), tag = "!" + std::to_string(2 * i + 1);
        text +=
            own + " = distinct !{" + own + ", " + tag + "}\n" + tag + " = !{!\"tag" + std::to_string(i % 2) + "\"}\n";
    }
    return text;
}

TEST(UnfinishedLoops, WithoutInnerLoops_ShareOneAnalysis) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseAssemblyString(tagged_loops_in_a_row(100), error, context);
    ASSERT_NE(module, nullptr) << error.getMessage().str();
    llvm::Function& function = *module->getFunction("f");
    UnfinishedLoops unfinished(function, "tag0");
    int innermost = 0, others = 0;
    while (llvm::Loop* const loop = unfinished.next()) {
        ++(loop->isInnermost() ? innermost : others);
        if (loop->isInnermost()) {
            EXPECT_EQ(unfinished.next(), loop);  // until it is finished
        }
        EXPECT_EQ(unfinished.analyses(), 1U + static_cast<unsigned>(others));
        loop->setLoopID(nullptr);
    }
    EXPECT_EQ(innermost, 50);
    EXPECT_EQ(others, 1);
}

TEST(UnfinishedLoops, AfterADivision_AreAnalysedAnew) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseAssemblyString(tagged_loops_in_a_row(4), error, context);
    ASSERT_NE(module, nullptr) << error.getMessage().str();
    UnfinishedLoops unfinished(*module->getFunction("f"), "tag1");
    ASSERT_NE(unfinished.next(), nullptr);
    const llvm::BasicBlock* const header = unfinished.next()->getHeader();
    unfinished.forget_analyses();
    ASSERT_NE(unfinished.next(), nullptr);
    EXPECT_EQ(unfinished.next()->getHeader(), header);
    EXPECT_EQ(unfinished.analyses(), 2U);
}

TEST(UnfinishedLoops, BetweenBarriers_HaveRightResults) {
    Compiled program(kernel_with(""));
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_GT(program.result().lanes.loops, 2U * steps);
    expect_right(program, [](uint32_t&, uint32_t) {});
}

TEST(UnfinishedLoops, WithInnerLoopsAndGuardsBetween_HaveRightResults) {
    Compiled program(kernel_with("    for (int i = 0; i < m + l % 3; ++i) x = x * 5 + l;\n"
                                 "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                                 "    if (l < m) x ^= 77;\n"));
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_GT(program.result().lanes.loops, 2U * steps);
    expect_right(program, [](uint32_t& x, uint32_t l) {
        for (uint32_t i = 0; i < m + l % 3; ++i)
            x = x * 5 + l;
        if (l < m)
            x ^= 77;
    });
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
