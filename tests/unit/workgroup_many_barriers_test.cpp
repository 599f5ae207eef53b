// What loops between barriers share: the places of values that change between them, and the conditions that all of them ask for.
#include "parsed_ir.h"
#include "targets/host/workgroup/frame/opaque_sizes.h"
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

constexpr size_t barrier_items = 160;

std::string kernel_of(const std::string& body) {
    return "kernel void k(global int* a, int m, local int* t) {\n"
           "    int g = get_global_id(0), l = get_local_id(0), n = get_local_size(0), x = a[g], y = 1;\n" +
           body + "    a[g] = x + y;\n}";
}

uint64_t scratch_of(const std::string& body) {
    Compiled program(kernel_of(body));
    EXPECT_EQ(program.prepare("k"), "");
    return program.result().scratch_bytes_per_work_item;
}

TEST(SharedPlaces, OfOneVariableBetweenBarriers_AreOne) {
    const std::string step = "    t[l] = x;\n    barrier(CLK_LOCAL_MEM_FENCE);\n    x += t[n - 1 - l] * 3;\n"
                             "    barrier(CLK_LOCAL_MEM_FENCE);\n";
    EXPECT_EQ(scratch_of(step + step + step + step + step), 4U);
}

TEST(SharedPlaces, AreNotSharedByValuesThatLiveTogether) {
    const std::string step =
        "    t[l] = x;\n    barrier(CLK_LOCAL_MEM_FENCE);\n    y ^= x + t[n - 1 - l];\n    x += y;\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n";
    EXPECT_EQ(scratch_of(step + step + step + step + step), 8U);
}

// The two ways of a round have barriers of their own, behind which other values live.
TEST(SharedPlaces, OfLoopsAndOfDifferentWays_HaveRightValues) {
    Compiled program(kernel_of(
        "    for (int r = 0; r < m; ++r) {\n"
        "        t[l] = x;\n        barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        if (r % 3 == 1) {\n"
        "            y = t[(l + r) % n] * 3;\n            barrier(CLK_LOCAL_MEM_FENCE);\n            x ^= y;\n"
        "        } else {\n"
        "            int z = t[(l + 1) % n], w = z * 7 + x;\n            barrier(CLK_LOCAL_MEM_FENCE);\n"
        "            t[l] = z + x;\n            barrier(CLK_LOCAL_MEM_FENCE);\n"
        "            x += t[(l + 2) % n] + z - w;\n"
        "        }\n        barrier(CLK_LOCAL_MEM_FENCE);\n    }\n"));
    ASSERT_EQ(program.prepare("k"), "");
    for (const size_t local : {size_t{1}, size_t{8}, size_t{20}, size_t{32}, barrier_items})
        for (const int32_t m : {0, 1, 2, 7}) {
            std::vector<int32_t> found(barrier_items);
            std::iota(found.begin(), found.end(), 5);
            std::vector<uint32_t> expected(found.begin(), found.end());
            for (size_t group = 0; group < barrier_items; group += local) {
                std::vector<uint32_t> x(expected.begin() + static_cast<std::ptrdiff_t>(group),
                                        expected.begin() + static_cast<std::ptrdiff_t>(group + local));
                std::vector<uint32_t> y(local, 1);
                for (size_t r = 0; r < static_cast<size_t>(m); ++r) {
                    std::vector<uint32_t> t = x, z(local), sums(local);
                    for (size_t l = 0; l < local; ++l)
                        if (r % 3 == 1) {
                            y[l] = t[(l + r) % local] * 3;
                            x[l] ^= y[l];
                        } else {
                            z[l] = t[(l + 1) % local];
                            sums[l] = z[l] + x[l];
                        }
                    for (size_t l = 0; l < local && r % 3 != 1; ++l)
                        x[l] += sums[(l + 2) % local] + z[l] - (z[l] * 7 + x[l]);
                }
                for (size_t l = 0; l < local; ++l)
                    expected[group + l] = x[l] + y[l];
            }
            program.run({1, {barrier_items, 1, 1}, {local, 1, 1}},
                        Arguments().add(found.data()).add(m).add_local(local * sizeof(int)));
            EXPECT_EQ(std::vector<uint32_t>(found.begin(), found.end()), expected)
                << "groups of " << local << ", " << m << " rounds";
        }
}

// `count` blocks in a row, each of which asks whether a group of `size` has whole vectors, and whether it has a rest.
std::string questions(unsigned count) {
    std::string text =
        "define i64 @f(i64 %x) {\n  %size = call noundef i64 asm \"\", \"=r,0\"(i64 %x)\n  br label %b0\n";
    for (unsigned i = 0; i < count; ++i) {
        const std::string own = std::to_string(i), next = std::to_string(i + 1);
        text += "b" + own + ":\n  %v" + own + " = and i64 %size, -16\n  %w" + own + " = icmp ne i64 %v" + own +
                ", 0\n  br i1 %w" + own + ", label %c" + own + ", label %b" + next + "\nc" + own + ":\n  %r" + own +
                " = icmp eq i64 %v" + own + ", %size\n  br i1 %r" + own + ", label %b" + next + ", label %d" + own +
                "\nd" + own + ":\n  br label %b" + next + "\n";
    }
    return text + "b" + std::to_string(count) + ":\n  ret i64 %size\n}\n";
}

TEST(RepeatedQuestions, OfManyLoops_AreHidden) {
    const auto hidden = [](unsigned count) {
        llvm::LLVMContext context;
        const std::unique_ptr<llvm::Module> module = compiler::test::parsed(questions(count), context);
        llvm::Function& function = *module->getFunction("f");
        hide_repeated_questions(function);
        EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
        unsigned found = 0;
        for (const llvm::Instruction& instruction : function.getEntryBlock())
            found += llvm::isa<llvm::CallInst>(instruction) ? 1 : 0;
        return found;
    };
    EXPECT_EQ(hidden(askers_max), 1U);  // the size
    EXPECT_EQ(hidden(askers_max + 1), 3U);
}

// The hidden word is computed at the end of the first block.
TEST(RepeatedQuestions, OfTheFirstBlock_StayThere) {
    std::string text = questions(askers_max + 1);
    const std::string end_of_first = "br label %b0\n";
    text.replace(text.find(end_of_first), end_of_first.size(),
                 "%v = and i64 %size, -16\n  %w = icmp ne i64 %v, 0\n  br i1 %w, label %b0, label %b1\n");
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = compiler::test::parsed(text, context);
    llvm::Function& function = *module->getFunction("f");
    hide_repeated_questions(function);
    EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
