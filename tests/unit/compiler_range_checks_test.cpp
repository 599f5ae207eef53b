// Checks of a number against 0 and a bound are one comparison, loops that branch inside have one copy of their body, and loops whose checks all succeed have a
// copy without them.
#include "analyses.h"
#include "compiler_support.h"
#include "machine/host.h"
#include "parsed_ir.h"
#include "targets/host/loops/branching_loops.h"
#include "targets/host/loops/passed_checks.h"
#include "targets/host/loops/range_checks.h"

#include <array>
#include <limits>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <vector>

namespace polder::compiler::test {
namespace {

std::unique_ptr<llvm::TargetMachine> machine_of(const char* cpu) {
    Host target = host();
    target.triple = llvm::Triple("x86_64-unknown-linux-gnu");
    target.cpu = cpu;
    target.features = "";
    return create_target_machine(target);
}

// A loop that counts with %i to %n and executes `body`, which ends with %inside. `type` is that of %inside.
std::string loop_with(const std::string& body, const std::string& type = "i1") {
    return "declare void @use(" + type +
           ")\ndefine void @f(i32 %n, i32 %width, <16 x i32> %places, <16 x i32> %widths) {\n"
           "entry:\n  br label %loop\nloop:\n  %i = phi i32 [ 0, %entry ], [ %next, %loop ]\n" +
           body + "  call void @use(" + type +
           " %inside)\n  %next = add i32 %i, 1\n  %ends = icmp eq i32 %next, %n\n"
           "  br i1 %ends, label %end, label %loop\nend:\n  ret void\n}\n";
}

struct Joined {
    unsigned checks = 0;
    unsigned comparisons = 0;  // in the loop, without that of its end
    std::string code;
};

Joined join(const std::string& text, const char* cpu = "sapphirerapids") {
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    if (!module)
        return {};
    llvm::Function& function = *module->getFunction("f");
    Joined joined;
    joined.checks = join_range_checks(function, *machine_of(cpu));
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        joined.comparisons += llvm::isa<llvm::ICmpInst>(instruction) && instruction.getName() != "ends" ? 1 : 0;
    llvm::raw_string_ostream(joined.code) << function;
    return joined;
}

TEST(RangeChecks, OfOneNumber_AreOneComparison) {
    for (const char* body : {"%a = icmp sgt i32 %i, -1\n %b = icmp slt i32 %i, %width\n %inside = and i1 %a, %b\n",
                             "%a = icmp slt i32 %i, 0\n %b = icmp sge i32 %i, %width\n %inside = or i1 %b, %a\n",
                             "%a = icmp sge i32 %i, 0\n %b = icmp sgt i32 %width, %i\n %inside = and i1 %b, %a\n",
                             "%a = icmp sgt i32 %i, -1\n %b = icmp slt i32 %i, %width\n"
                             " %inside = select i1 %a, i1 %b, i1 false\n",
                             "%a = icmp slt i32 %i, 0\n %b = icmp sge i32 %i, %width\n"
                             " %inside = select i1 %b, i1 true, i1 %a\n",
                             "%a = icmp sgt i32 %i, -3\n %x = add nsw i32 %i, 2\n %b = icmp slt i32 %x, %width\n"
                             " %inside = and i1 %a, %b\n"}) {
        const Joined joined = join(loop_with(body));
        EXPECT_EQ(joined.checks, 1U) << joined.code;
        EXPECT_EQ(joined.comparisons, 1U) << joined.code;
        EXPECT_LT(joined.code.find("smax"), joined.code.find("loop:")) << joined.code;
    }
}

TEST(RangeChecks, AmongOtherConditions_AreFound) {
    const Joined joined =
        join(loop_with("%a = icmp sgt i32 %i, -1\n %b = icmp slt i32 %i, %width\n %c = icmp ne i32 %i, 7\n"
                       " %j = sub i32 %i, 9\n %d = icmp sgt i32 %j, -1\n %e = icmp slt i32 %j, %n\n"
                       " %x = and i1 %a, %e\n %y = and i1 %d, %c\n %z = and i1 %x, %y\n %inside = and i1 %z, %b\n"));
    EXPECT_EQ(joined.checks, 2U) << joined.code;
    EXPECT_EQ(joined.comparisons, 3U) << joined.code;
}

TEST(RangeChecks, OfVectors_AreOneComparisonWhereTheProcessorHasIt) {
    const std::string text = loop_with("%a = icmp sgt <16 x i32> %places, splat (i32 -1)\n"
                                       " %b = icmp slt <16 x i32> %places, %widths\n"
                                       " %inside = and <16 x i1> %a, %b\n",
                                       "<16 x i1>");
    EXPECT_EQ(join(text).comparisons, 1U);
    EXPECT_EQ(join(text, "haswell").comparisons, 2U);
}

TEST(RangeChecks, ThatAreNone_StayAsTheyAre) {
    constexpr const char* sum_apart = "%a = icmp sgt i32 %i, -2\n %x = add nsw i32 %i, 2\n"
                                      " %b = icmp slt i32 %x, %width\n %inside = and i1 %a, %b\n";
    for (const char* body :
         {"%a = icmp sgt i32 %i, -1\n %w = mul i32 %i, %width\n %b = icmp slt i32 %i, %w\n %inside = and i1 %a, %b\n",
          "%a = icmp sgt i32 %i, -1\n %b = icmp slt i32 %i, %width\n %inside = or i1 %a, %b\n",
          "%a = icmp sgt i32 %i, 0\n %b = icmp slt i32 %i, %width\n %inside = and i1 %a, %b\n",
          "%a = icmp sgt i32 %i, -1\n %b = icmp ult i32 %i, %width\n %inside = and i1 %a, %b\n",
          "%a = icmp sgt i32 %i, -3\n %x = add i32 %i, 2\n %b = icmp slt i32 %x, %width\n %inside = and i1 %a, %b\n",
          sum_apart}) {
        const Joined joined = join(loop_with(body));
        EXPECT_EQ(joined.checks, 0U) << joined.code;
        EXPECT_EQ(joined.comparisons, 2U) << joined.code;
    }
}

TEST(RangeChecks, WithAnyBound_HaveTheSameResults) {
    const Outcome built = build("kernel void k(global const int* places, global int* sums, int width, int count) {\n"
                                "  int sum = 0;\n"
                                "  for (int i = 0; i < count; ++i) {\n"
                                "    int x = places[get_global_id(0)] + i, y = places[i];\n"
                                "    if (x >= 0 && x < width) sum += 1;\n"
                                "    if (y < 0 || y >= width) sum += 100;\n"
                                "    sum += x + 1 >= 0 && x + 1 < width ? 10000 : 0; }\n"
                                "  sums[get_global_id(0)] = sum; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
    std::vector<int> places{least, least + 1, -3, -2, -1, 0, 1, 2, 5, 6, 7, most - 9, most - 8};
    while (places.size() < 64)
        places.push_back(static_cast<int>(places.size()) - 40);
    constexpr int count = 7;
    for (const int width : {least, -1, 0, 1, 6, most}) {
        std::vector<int> sums(places.size());
        Launch{built, "k"}.set(0, places.data()).set(1, sums.data()).set(2, width).set(3, count).run(64, 32);
        for (size_t item = 0; item < places.size(); ++item) {
            const auto is_inside = [&](int64_t x) { return x >= 0 && x < width; };
            int sum = 0;
            for (int i = 0; i < count; ++i)
                sum += (is_inside(int64_t{places[item]} + i) ? 1 : 0) +
                       (is_inside(places[static_cast<size_t>(i)]) ? 0 : 100) +
                       (is_inside(int64_t{places[item]} + i + 1) ? 10000 : 0);
            EXPECT_EQ(sums[item], sum) << "width " << width << ", item " << item;
        }
    }
}

struct Passed {
    unsigned copies = 0;
    size_t comparisons = 0;  // in loops, without those of their ends
    std::string code;
};

// A loop with %i from 0 to %n, whose sum grows by one of two numbers: as %inside says, which `body` computes from %x = %start + %step * %i.
Passed copy_passed(const std::string& body, const std::string& step = "1", const std::string& sum = "%sum") {
    const std::string text = "define i32 @f(i32 %start, i32 %n, i32 %width, i32 %least) {\n"
                             "entry:\n  br label %loop\nloop:\n  %i = phi i32 [ 0, %entry ], [ %next, %loop ]\n" +
                             std::string(sum == "%sum" ? "  %sum = phi i32 [ 0, %entry ], [ %more, %loop ]\n" : "") +
                             "  %far = mul i32 %i, " + step + "\n  %x = add i32 %start, %far\n" + body +
                             "  %one = select i1 %inside, i32 %x, i32 7\n  %more = xor i32 %one, " + sum +
                             "\n  %next = add i32 %i, 1\n  %ends = icmp eq i32 %next, %n\n"
                             "  br i1 %ends, label %end, label %loop\nend:\n  ret i32 %more\n}\n";
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    if (!module)
        return {};
    llvm::Function& function = *module->getFunction("f");
    llvm::FunctionAnalysisManager functions;
    llvm::PassBuilder().registerFunctionAnalyses(functions);
    Passed passed;
    passed.copies = copy_without_passed_checks(function, functions);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    const auto& loops = functions.getResult<llvm::LoopAnalysis>(function);
    for (const llvm::Loop* loop : loops)
        for (const llvm::BasicBlock* block : loop->blocks())
            for (const llvm::Instruction& instruction : *block)
                passed.comparisons +=
                    llvm::isa<llvm::ICmpInst>(instruction) && !instruction.getName().starts_with("ends") ? 1 : 0;
    llvm::raw_string_ostream(passed.code) << function;
    return passed;
}

constexpr const char* both_ends = "%a = icmp sgt i32 %x, -1\n %b = icmp slt i32 %x, %width\n %inside = and i1 %a, %b\n";

TEST(PassedChecks, OfBothEnds_HaveACopyOfTheLoopWithoutThem) {
    for (const char* body :
         {both_ends,
          "%a = icmp slt i32 %x, 0\n %b = icmp ult i32 %x, %width\n %c = xor i1 %a, true\n %inside = and i1 %c, %b\n",
          "%a = icmp sge i32 %x, 0\n %b = icmp sge i32 %width, %x\n %inside = select i1 %a, i1 %b, i1 false\n"})
        for (const char* step : {"1", "-1", "3"}) {
            const Passed passed = copy_passed(body, step);
            EXPECT_EQ(passed.copies, 1U) << passed.code;
            EXPECT_EQ(passed.comparisons, 2U) << passed.code;  // of the loop as it was
        }
}

TEST(PassedChecks, ThatAreNone_HaveNoCopy) {
    for (const char* body :
         {"%inside = icmp sgt i32 %x, -1\n", "%inside = icmp slt i32 %x, %width\n",  // of one end
          "%a = icmp sgt i32 %x, -1\n %b = icmp slt i32 %x, 3\n %inside = and i1 %a, %b\n",  // the first few
          "%y = mul i32 %x, %x\n %a = icmp sgt i32 %y, -1\n %b = icmp slt i32 %y, %width\n %inside = and i1 %a, %b\n",
          "%a = icmp sgt i32 %x, -1\n %b = icmp slt i32 %x, %sum\n %inside = and i1 %a, %b\n"})
        EXPECT_EQ(copy_passed(body).copies, 0U);
    EXPECT_EQ(copy_passed(both_ends, "1", "5").copies, 0U);  // no iteration waits for the one before
    EXPECT_EQ(copy_passed(both_ends, "%least").copies, 0U);
}

// One work-item in each work-group, so no lanes.
TEST(PassedChecks, WithAnyRange_HaveTheSameResults) {
    const Outcome built = build(
        "kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
        "void k(global const int* places, global uint* sums, int width, uint count, ulong far) {\n"
        "  const uint at = places[get_global_id(0)];\n"
        "  uint up = 1, down = 1, wide = 1;\n"
        "  for (uint i = 0; i < count; ++i) {\n"
        "    const int x = at + i; up = up * 5 + (x >= 0 && x < width ? 1 : x < 0 ? 2 : 3); }\n"
        "  for (uint i = 0; i < count; ++i) {\n"
        "    const int x = at - i * 7; down = down * 5 + (x < 0 ? 2 : x > width ? 3 : 1); }\n"
        "  for (uint i = 0; i < count; ++i) {\n"
        "    const long x = (long)(int)(at + i) - 3; up = up * 3 + (x >= 0 && x < width ? 1 : 2); }\n"
        "  for (uint i = 0; i < count; ++i) {\n"
        "    const long x = (long)(int)at + far + i; wide = wide * 5 + (x >= 0 && x < (ulong)(long)width ? 1 : 3); }\n"
        "  sums[get_global_id(0)] = up + 3 * down + 7 * wide; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
    std::vector<int> places{least, least + 1, least + 60, -70, -9, -8, -1,       0,        1,   2,
                            5,     6,         7,          62,  90, 91, most - 9, most - 8, most};
    for (const int width : {least, -1, 0, 1, 6, 98, 99, 100, most})
        for (const uint32_t count : {0U, 1U, 9U, 10U})
            for (const uint64_t far : {uint64_t{0}, uint64_t{1} << 63U, ~uint64_t{0} - 4}) {
                std::vector<uint32_t> sums(places.size());
                Launch{built, "k"}
                    .set(0, places.data())
                    .set(1, sums.data())
                    .set(2, width)
                    .set(3, count)
                    .set(4, far)
                    .run(places.size(), 1);
                for (size_t item = 0; item < places.size(); ++item) {
                    const auto at = static_cast<uint32_t>(places[item]);
                    uint32_t up = 1, down = 1, wide = 1;
                    for (uint32_t i = 0; i < count; ++i) {
                        const auto x = static_cast<int>(at + i), y = static_cast<int>(at - i * 7);
                        const auto z = static_cast<int64_t>(static_cast<uint64_t>(int64_t{places[item]}) + far + i);
                        up = up * 5 + (x >= 0 && x < width ? 1 : x < 0 ? 2 : 3);
                        down = down * 5 + (y < 0 ? 2 : y > width ? 3 : 1);
                        const bool is_inside =
                            z >= 0 && static_cast<uint64_t>(z) < static_cast<uint64_t>(int64_t{width});
                        wide = wide * 5 + (is_inside ? 1 : 3);
                    }
                    for (uint32_t i = 0; i < count; ++i) {
                        const int64_t x = int64_t{static_cast<int>(at + i)} - 3;
                        up = up * 3 + (x >= 0 && x < width ? 1 : 2);
                    }
                    EXPECT_EQ(sums[item], up + 3 * down + 7 * wide)
                        << "width " << width << ", count " << count << ", place " << places[item] << ", far " << far;
                }
            }
}

// The loop compares the divisor with zero before it divides, the copy may not. Of the sum `number / divisor + i` one end is checked, or both, or both as those
// of a number of more bits, for which the copy also asks whether the sum wraps around.
TEST(PassedChecks, BesideAQuotient_DoNotDivideByZero) {
    constexpr int width = 16;
    constexpr uint32_t number = 7;
    constexpr int64_t limit = 5;
    for (const char* const checks :
         {"if (divisor != 0 && (long)(number / divisor + (uint)(i + reach)) < limit) sum ^= x;",
          "if (divisor != 0) { const int q = (int)(number / divisor) + i + reach;"
          " if (q >= 0 && q < (int)limit) sum ^= x; }",
          "if (divisor != 0) { const long q = (long)(int)(number / divisor + (uint)(i + reach));"
          " if (q >= 0 && q < limit) sum ^= x; }"}) {
        const Outcome built =
            build("kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
                  "void k(global uint* sums, int width, uint number, uint divisor, long limit, int reach) {\n"
                  "  const int at = get_global_id(0);\n  uint sum = 1;\n"
                  "  for (int i = -reach; i <= reach; ++i) {\n"
                  "    const int x = at + i;\n    sum = sum * 5 + (x < 0 ? 1 : x < width ? 2 : 3);\n    " +
                  std::string(checks) + "\n  }\n  sums[at] = sum; }");
        ASSERT_EQ(built.status, Status::success) << built.log;
        for (const uint32_t divisor : {0U, 2U}) {
            std::vector<uint32_t> sums(width);
            Launch{built, "k"}
                .set(0, sums.data())
                .set(1, width)
                .set(2, number)
                .set(3, divisor)
                .set(4, limit)
                .set(5, 3)
                .run(width, 1);
            for (int item = 0; item < width; ++item) {
                uint32_t sum = 1;
                for (int i = -3; i <= 3; ++i) {
                    const int x = item + i;
                    sum = sum * 5 + (x < 0 ? 1 : x < width ? 2 : 3);
                    if (divisor != 0 && number / divisor + static_cast<uint32_t>(i + 3) < limit)
                        sum ^= static_cast<uint32_t>(x);
                }
                EXPECT_EQ(sums[static_cast<size_t>(item)], sum)
                    << checks << ", divisor " << divisor << ", item " << item;
            }
        }
    }
}

// How many copies of the volatile stores of integers a loop has after LLVM's passes: one in each iteration.
size_t copies_of_body(const std::string& body) {
    const std::string text =
        "define void @f(ptr %p, i32 %n) {\n"
        "entry:\n  br label %loop\nloop:\n  %i = phi i32 [ 0, %entry ], [ %next, %latch ]\n"
        "  %at = getelementptr i32, ptr %p, i32 %i\n  %x = load i32, ptr %at\n" +
        body +
        "latch:\n  store volatile i32 %i, ptr %p\n  %next = add nuw nsw i32 %i, 1\n"
        "  %ends = icmp eq i32 %next, %n\n  br i1 %ends, label %end, label %loop\nend:\n  ret void\n}\n";
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    if (!module)
        return 0;
    const auto machine = machine_of("znver4");
    module->setDataLayout(machine->createDataLayout());
    module->setTargetTriple(machine->getTargetTriple());
    llvm::PassBuilder builder(machine.get());
    add_branching_loops_pass(builder);
    Analyses analyses;
    analyses.register_all(builder);
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*module, analyses.modules);
    size_t copies = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(*module->getFunction("f")))
        if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
            store && store->isVolatile() && store->getValueOperand()->getType()->isIntegerTy())
            ++copies;
    return copies;
}

// `count` products and `count` other operations between them, which no pass combines. The last one is %y.
std::string operations(unsigned count) {
    std::string text = "  %y0 = add i32 %x, 1\n";
    for (unsigned i = 0; i < count; ++i) {
        const std::string own = std::to_string(i), next = i + 1 == count ? "" : std::to_string(i + 1);
        text += "  %z" + own + " = mul i32 %y" + own + ", %n\n  %y" + next + " = xor i32 %z" + own + ", " + own + "9\n";
    }
    return text;
}

TEST(BranchingLoops, ThatAreLong_AreNotUnrolledAtRunTime) {
    const auto with_branch = [](unsigned count) {
        return operations(count) + "  %c = icmp eq i32 %y, 5\n  br i1 %c, label %rare, label %latch\n"
                                   "rare:\n  store volatile float 1.0, ptr %at\n  br label %latch\n";
    };
    EXPECT_EQ(copies_of_body(with_branch(20)), 1U);
    EXPECT_GT(copies_of_body(with_branch(3)), 1U);
    EXPECT_GT(copies_of_body(operations(20) + "  store volatile i32 %y, ptr %at\n  br label %latch\n"), 2U);
}

}  // namespace
}  // namespace polder::compiler::test
