// What an iteration pushes and the next one pops is not loaded.
#include "compiler_support.h"
#include "parsed_ir.h"
#include "targets/host/loops/stack_tops.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <vector>

namespace polder::compiler::test {
namespace {

struct Kept {
    unsigned loads = 0;
    bool begins_with_load = false;  // each iteration
    std::string code;
};

// A loop that pops %value. It goes on to %end from %leaf, which pushes nothing, and from %inner with %next, after `push`.
// `at_begin` and `at_end`: what each iteration does before it pops and before it asks whether the stack is empty.
Kept keep(const std::string& push, const std::string& before = "", const std::string& at_begin = "",
          const std::string& at_end = "") {
    const std::string text = "declare void @use(ptr)\ndeclare void @any()\n"
                             "define void @f(ptr %p, i32 %n) {\n"
                             "entry:\n  %stack = alloca [32 x i32]\n  store i32 %n, ptr %stack\n" +
                             before +
                             "  br label %loop\n"
                             "loop:\n  %height = phi i32 [ 1, %entry ], [ %after, %end ]\n"
                             "  %sum = phi i32 [ 0, %entry ], [ %more, %end ]\n"
                             "  %last = add i32 %height, -1\n  %place = zext i32 %last to i64\n"
                             "  %top = getelementptr inbounds i32, ptr %stack, i64 %place\n" +
                             at_begin +
                             "  %value = load i32, ptr %top\n"
                             "  %is_leaf = icmp ult i32 %value, 3\n  br i1 %is_leaf, label %leaf, label %inner\n"
                             "leaf:\n  %counted = add i32 %sum, 1\n  br label %end\n"
                             "inner:\n  %third = udiv i32 %value, 3\n  %above = zext i32 %height to i64\n"
                             "  %next_top = getelementptr inbounds i32, ptr %stack, i64 %above\n" +
                             push +
                             "  br label %end\n"
                             "end:\n  %after = phi i32 [ %last, %leaf ], [ %next, %inner ]\n"
                             "  %more = phi i32 [ %counted, %leaf ], [ %sum, %inner ]\n" +
                             at_end +
                             "  %is_empty = icmp eq i32 %after, 0\n  br i1 %is_empty, label %out, label %loop\n"
                             "out:\n  store i32 %more, ptr %p\n  ret void\n}\n";
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    if (!module)
        return {};
    llvm::Function& function = *module->getFunction("f");
    Kept kept;
    kept.loads = keep_stack_tops(function);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (llvm::isa<llvm::LoadInst>(instruction) && instruction.getParent()->getName() == "loop")
            kept.begins_with_load = true;
    llvm::raw_string_ostream(kept.code) << function;
    return kept;
}

TEST(StackTops, ThatWerePushed_AreNotLoaded) {
    for (const char* push : {"  store i32 %third, ptr %top\n  %next = add i32 %height, 0\n",
                             "  store i32 %third, ptr %next_top\n  %next = add i32 %height, 1\n",
                             "  store i32 %third, ptr %next_top\n  store i32 %n, ptr %p\n  store i32 7, ptr %top\n"
                             "  %next = add i32 %height, 1\n",
                             "  store i32 %value, ptr %next_top\n  %next = add i32 %height, 1\n"}) {
        const Kept kept = keep(push);
        EXPECT_EQ(kept.loads, 1U) << kept.code;
        EXPECT_FALSE(kept.begins_with_load) << kept.code;
    }
}

TEST(StackTops, ThatAreNotKnown_AreLoaded) {
    constexpr const char* pushes = "  store i32 %third, ptr %next_top\n  %next = add i32 %height, 1\n";
    EXPECT_EQ(keep("  store i32 %third, ptr %next_top\n  %next = add i32 %height, 2\n").loads, 0U);
    EXPECT_EQ(keep("  store i16 7, ptr %next_top\n  %next = add i32 %height, 1\n").loads, 0U);
    EXPECT_EQ(keep("  store volatile i32 7, ptr %next_top\n  %next = add i32 %height, 1\n").loads, 0U);
    EXPECT_EQ(keep(std::string("  store i32 %third, ptr %next_top\n  %odd = getelementptr i8, ptr %next_top, i64 2\n"
                               "  store i16 7, ptr %odd\n  %next = add i32 %height, 1\n"))
                  .loads,
              0U);
    EXPECT_EQ(keep(std::string("  store i32 %third, ptr %next_top\n  call void @any()\n  %next = add i32 %height, 1\n"))
                  .loads,
              0U);
    EXPECT_EQ(keep(pushes).loads, 1U);
    EXPECT_EQ(keep(pushes, "  call void @use(ptr %stack)\n").loads, 0U);
    EXPECT_EQ(keep(pushes, "", "  store i32 7, ptr %top\n").loads, 0U);
    EXPECT_EQ(keep(pushes, "", "", "  store i32 7, ptr %stack\n").loads, 0U);
    // Other numbers of the same bits are other places.
    EXPECT_EQ(
        keep("  %signed = sext i32 %height to i64\n  %other = getelementptr inbounds i32, ptr %stack, i64 %signed\n"
             "  store i32 %third, ptr %other\n  %next = add i32 %height, 1\n")
            .loads,
        0U);
    EXPECT_EQ(keep("  %other = getelementptr inbounds i64, ptr %stack, i64 %above\n"
                   "  store i32 %third, ptr %other\n  %next = add i32 %height, 1\n")
                  .loads,
              0U);
}

// Elements of 16 bits, accessed as 32: what is stored second changes half of what was stored first.
TEST(StackTops, OfNumbersThatOverlap_AreLoaded) {
    const auto with_elements = [](const char* type) {
        const std::string element = std::string("getelementptr inbounds ") + type + ", ptr %stack, i64 ";
        llvm::LLVMContext context;
        const auto module =
            parsed("define void @f(ptr %p, i32 %n) {\n"
                   "entry:\n  %stack = alloca [64 x i32]\n  store i32 %n, ptr %stack\n"
                   "  br label %loop\n"
                   "loop:\n  %height = phi i32 [ 1, %entry ], [ %after, %end ]\n"
                   "  %last = add i32 %height, -1\n  %place = zext i32 %last to i64\n"
                   "  %top = " +
                       element +
                       "%place\n  %value = load i32, ptr %top\n"
                       "  %is_leaf = icmp ult i32 %value, 3\n  br i1 %is_leaf, label %leaf, label %inner\n"
                       "leaf:\n  br label %end\n"
                       "inner:\n  %above = zext i32 %height to i64\n  %next = add i32 %height, 1\n"
                       "  %behind = zext i32 %next to i64\n"
                       "  %next_top = " +
                       element + "%above\n  store i32 3, ptr %next_top\n" + "  %other = " + element +
                       "%behind\n  store i32 %n, ptr %other\n  br label %end\n"
                       "end:\n  %after = phi i32 [ %last, %leaf ], [ %next, %inner ]\n"
                       "  %is_empty = icmp eq i32 %after, 0\n  br i1 %is_empty, label %out, label %loop\n"
                       "out:\n  ret void\n}\n",
                   context);
        return module ? keep_stack_tops(*module->getFunction("f")) : ~0U;
    };
    EXPECT_EQ(with_elements("i32"), 1U);
    EXPECT_EQ(with_elements("i16"), 0U);
}

TEST(StackTops, OfWalksThroughTrees_HaveTheSameResults) {
    const Outcome built = build("kernel void k(global const uint* in, global uint* out, global uint* seen) {\n"
                                "  uint values[40], depths[40], sum = 0, count = 0;\n"
                                "  int height = 1;\n"
                                "  values[0] = in[get_global_id(0)];\n"
                                "  depths[0] = 1;\n"
                                "  while (height > 0) {\n"
                                "    const uint value = values[--height], depth = depths[height];\n"
                                "    seen[get_global_id(0)] = ++count;\n"
                                "    if (value < 3) { sum += depth * (value + 1); continue; }\n"
                                "    values[height] = value / 3;\n"
                                "    depths[height++] = depth + 1;\n"
                                "    if (value & 1) {\n"
                                "      values[height] = value - value / 3 - 1;\n"
                                "      seen[get_global_id(0)] = count;\n"
                                "      depths[height++] = depth + 3;\n"
                                "    }\n"
                                "    if (value % 5 == 0) {\n"
                                "      values[height] = values[height - 1] / 2;\n"
                                "      depths[height++] = depth;\n"
                                "    }\n"
                                "  }\n"
                                "  out[get_global_id(0)] = sum; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    std::vector<uint32_t> in, out(64), seen(64);
    for (uint32_t item = 0; item < out.size(); ++item)
        in.push_back(item * item * 7 % 1009);
    Launch{built, "k"}.set(0, in.data()).set(1, out.data()).set(2, seen.data()).run(64, 32);
    for (size_t item = 0; item < in.size(); ++item) {
        std::vector<std::pair<uint32_t, uint32_t>> stack{{in[item], 1}};
        uint32_t sum = 0, count = 0;
        while (!stack.empty()) {
            const auto [value, depth] = stack.back();
            stack.pop_back();
            ++count;
            if (value < 3) {
                sum += depth * (value + 1);
                continue;
            }
            stack.emplace_back(value / 3, depth + 1);
            if (value & 1U)
                stack.emplace_back(value - value / 3 - 1, depth + 3);
            if (value % 5 == 0)
                stack.emplace_back(stack.back().first / 2, depth);
        }
        EXPECT_EQ(out[item], sum) << item;
        EXPECT_EQ(seen[item], count) << item;
    }
}

}  // namespace
}  // namespace polder::compiler::test
