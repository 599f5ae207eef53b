// The estimate that decides between code with lanes and code without.
#include "compiler_support.h"
#include "machine/host.h"
#include "targets/host/work_estimate.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <variant>

namespace polder::compiler::test {
namespace {

double work_of(const std::string& text) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseAssemblyString(text, error, context);
    if (module == nullptr || llvm::verifyModule(*module, &llvm::errs())) {
        ADD_FAILURE() << error.getMessage().str();
        return 0;
    }
    const auto machine = create_host_target_machine();
    llvm::Function& function = *module->getFunction("f");
    return estimated_work(function, machine->getTargetTransformInfo(function));
}

// A loop from 0 to `end` whose counter goes up by `step`. In each iteration it divides numbers, the costs of which exceed all others.
std::string loop(const std::string& end, int step, const std::string& start = "0", const std::string& mark = "") {
    return "define void @f(ptr %p, i64 %n) {\n"
           "entry:\n"
           "  %bc.resume.val = add i64 %n, 0\n"
           "  br label %loop\n"
           "loop:\n"
           "  %i = phi i64 [ " +
           start +
           ", %entry ], [ %next, %loop ]\n"
           "  %at = getelementptr double, ptr %p, i64 %i\n"
           "  %x = load <8 x double>, ptr %at\n"
           "  %y = fdiv <8 x double> splat (double 1.0), %x\n"
           "  store <8 x double> %y, ptr %at\n"
           "  %next = add nuw i64 %i, " +
           std::to_string(step) +
           "\n"
           "  %more = icmp ult i64 %next, " +
           end +
           "\n"
           "  br i1 %more, label %loop, label %end" +
           mark +
           "\n"
           "end:\n"
           "  ret void\n"
           "}\n";
}

TEST(WorkEstimate, ACounterThatGoesUpByEight_HasAnEighthOfTheIterations) {
    EXPECT_NEAR(work_of(loop("%n", 1)) / work_of(loop("%n", 8)), 8, 0.5);
}

TEST(WorkEstimate, AKnownNumberOfIterations_Counts) {
    EXPECT_NEAR(work_of(loop("1000", 1)) / work_of(loop("100", 1)), 10, 0.5);
}

TEST(WorkEstimate, TheRestOfAnUnrolledLoop_IsOneIteration) {
    EXPECT_NEAR(work_of(loop("%n", 1, "%bc.resume.val")) / work_of(loop("100", 1)), 0.01, 0.005);
}

TEST(WorkEstimate, TheRestOfWorkItems_CountsNothing) {
    const std::string mark = ", !llvm.loop !0";
    const std::string nodes = "!0 = distinct !{!0, !1}\n!1 = !{!\"polder.rest_of_work_items\"}\n";
    EXPECT_LT(work_of(loop("%n", 1, "0", mark) + nodes), work_of(loop("2", 1)));
}

// A branch in a loop, one of whose sides divides.
std::string choice(const std::string& rare) {
    return "define void @f(ptr %p, i64 %n) {\n"
           "entry:\n"
           "  br label %loop\n"
           "loop:\n"
           "  %i = phi i64 [ 0, %entry ], [ %next, %join ]\n"
           "  %at = getelementptr double, ptr %p, i64 %i\n"
           "  %x = load double, ptr %at\n"
           "  %c = fcmp ogt double %x, 1.0\n"
           "  br i1 %c, label %join, label %" +
           rare + "\n" + rare +
           ":\n"
           "  %v = load <8 x double>, ptr %at\n"
           "  %y = fdiv <8 x double> splat (double 1.0), %v\n"
           "  store <8 x double> %y, ptr %at\n"
           "  br label %join\n"
           "join:\n"
           "  %next = add i64 %i, 1\n"
           "  %more = icmp ult i64 %next, %n\n"
           "  br i1 %more, label %loop, label %end\n"
           "end:\n"
           "  ret void\n"
           "}\n";
}

TEST(WorkEstimate, AccessesThatAreApartAgainstExpectation_AreRare) {
    EXPECT_GT(work_of(choice("other")), 3 * work_of(choice("apart")));
}

// Whether the code for any work-groups has lanes.
bool has_lanes(const std::string& source) {
    const Outcome built = build(source);
    EXPECT_EQ(built.status, Status::success) << built.log;
    auto opened = Executable::open(built.module, target());
    if (!opened) {
        ADD_FAILURE();
        return false;
    }
    const auto code = (*opened)->code("k", std::nullopt);
    if (!code) {
        ADD_FAILURE() << "no code";
        return false;
    }
    return std::get<driver::HostCode>(**code).preferred_multiple > 1;
}

// Without lanes, LLVM keeps the matrix in registers once all loops are unrolled.
TEST(WorkEstimate, KernelsThatAreShorterWithoutLanes_HaveNone) {
    EXPECT_FALSE(has_lanes(R"(
        kernel void k(global float* matrices) {
            int item = get_global_id(0);
            float a[36];
            for (int i = 0; i < 36; i++) a[i] = matrices[item * 36 + i];
            for (int k = 0; k < 6; k++) {
                float inverse = 1.0f / a[k * 7];
                for (int i = k + 1; i < 6; i++) {
                    float f = a[i * 6 + k] * inverse;
                    a[i * 6 + k] = f;
                    for (int j = k + 1; j < 6; j++) a[i * 6 + j] -= f * a[k * 6 + j];
                }
            }
            for (int i = 0; i < 36; i++) matrices[item * 36 + i] = a[i];
        })"));
}

TEST(WorkEstimate, KernelsWithNeighbouringElements_HaveLanes) {
    EXPECT_TRUE(has_lanes(R"(
        kernel void k(global float* data, float factor) {
            size_t x = get_global_id(0);
            for (int i = 0; i < 10; i++) data[x] = sqrt(data[x] * factor);
        })"));
}

}  // namespace
}  // namespace polder::compiler::test
