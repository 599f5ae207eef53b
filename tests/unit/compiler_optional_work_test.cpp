// Compilations that end early because their results are not needed any more: at each of their steps, without effects on later ones.
#include "compiler_support.h"
#include "machine/host.h"
#include "machine/machine_pool.h"
#include "targets/host/pass_gate.h"

#include <compiler/optional_work.h>

#include <llvm/AsmParser/Parser.h>
#include <llvm/Support/SourceMgr.h>

namespace polder::compiler::test {
namespace {

// Unneeded from its `calls`-th call on.
struct Countdown {
    unsigned calls = 0;
    unsigned called = 0;
    [[nodiscard]] OptionalWork::IsUnneeded function() {
        return [this] { return ++called >= calls; };
    }
};

constexpr const char* source = R"(kernel void k(global float* a, int n) {
    float x = a[get_global_id(0)];
    for (int i = 0; i < n; ++i)
        x = x > 1 ? sqrt(x) * i : exp(x) + a[i];
    a[get_global_id(0)] = x;
})";

TEST(OptionalWork, IsThatOfTheInnermostObjectOfTheThread) {
    EXPECT_FALSE(OptionalWork::is_unneeded());
    EXPECT_FALSE(OptionalWork::of_this_thread());
    {
        const OptionalWork outer([] { return true; });
        EXPECT_TRUE(OptionalWork::is_unneeded());
        {
            const OptionalWork inner([] { return false; });
            EXPECT_FALSE(OptionalWork::is_unneeded());
        }
        EXPECT_TRUE(OptionalWork::is_unneeded());
        const OptionalWork never({});
        EXPECT_FALSE(OptionalWork::is_unneeded());
    }
    EXPECT_FALSE(OptionalWork::is_unneeded());
}

TEST(OptionalWork, EndsAtAnyStepAndIsDoneAnewLater) {
    const Outcome built = build(source);
    ASSERT_EQ(built.status, Status::success) << built.log;
    auto opened = Executable::open(built.module, target());
    ASSERT_TRUE(opened.has_value());
    Executable& executable = **opened;
    unsigned abandoned = 0;
    bool is_made = false;
    for (unsigned calls = 1; !is_made; calls += calls / 4 + 1) {
        Countdown countdown{calls};
        const OptionalWork optional(countdown.function());
        const auto code = executable.code("k", CodeVersion{});
        is_made = code.has_value();
        EXPECT_EQ(is_made, countdown.called < calls);
        if (!is_made) {
            ++abandoned;
            EXPECT_EQ(code.error().detail(), "the code is not needed any more");
        }
    }
    EXPECT_GT(abandoned, 10U);
    const OptionalWork optional([] { return true; });
    EXPECT_TRUE(executable.code("k", CodeVersion{}).has_value());  // is there already
}

TEST(OptionalWork, InTheCodeGeneratorLeavesAMachineThatMakesTheSameCode) {
    const std::string text = R"(define i32 @f(ptr %a, i32 %n) {
  %b = getelementptr i32, ptr %a, i64 7
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
  %next = add i32 %i, 1
  %x = load i32, ptr %b
  %y = mul i32 %x, %i
  store i32 %y, ptr %a
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i32 %y
})";
    MachinePool pool;
    const EmittingMachine machine = pool.take(host());
    const auto emit = [&] {
        llvm::LLVMContext context;
        llvm::SMDiagnostic problem;
        const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
        PassGate gate(*module);
        context.setOptPassGate(gate);
        std::string object = machine.emitter().emit(*module).value_or("");
        context.setOptPassGate(llvm::getGlobalPassGate());
        return object;
    };
    const std::string whole = emit();
    unsigned shorter = 0;
    for (unsigned calls = 1;; ++calls) {
        Countdown countdown{calls};
        {
            const OptionalWork optional(countdown.function());
            shorter += emit().size() < whole.size();
        }
        EXPECT_EQ(emit(), whole) << calls;
        if (countdown.called < calls)
            break;
    }
    EXPECT_GT(shorter, 10U);
}

}  // namespace
}  // namespace polder::compiler::test
