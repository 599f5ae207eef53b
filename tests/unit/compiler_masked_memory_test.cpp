// Masked accesses that the processor has no instruction for: no branches, and lanes that are masked off touch nothing.
#include "compiler_support.h"
#include "machine/host.h"
#include "targets/host/masked_memory.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <numeric>

namespace polder::compiler::test {
namespace {

size_t masked_accesses_in(const llvm::Function& function) {
    size_t count = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
            count += call->getCalledFunction()->getName().starts_with("llvm.masked.") ? 1 : 0;
    return count;
}

TEST(MaskedMemory, GathersAndScattersOfBytes_BecomeLoadsAndStoresWithoutBranches) {
    // What is gathered is scattered: the second of them must not look at what the first one was.
    const char* text = R"(
        define void @f(<16 x ptr> %from, <16 x ptr> %to, <16 x i1> %mask) {
          %x = call <16 x i8> @llvm.masked.gather.v16i8.v16p0(<16 x ptr> align 1 %from, <16 x i1> %mask, <16 x i8> splat (i8 7))
          call void @llvm.masked.scatter.v16i8.v16p0(<16 x i8> %x, <16 x ptr> align 1 %to, <16 x i1> %mask)
          ret void
        }
        declare <16 x i8> @llvm.masked.gather.v16i8.v16p0(<16 x ptr>, <16 x i1>, <16 x i8>)
        declare void @llvm.masked.scatter.v16i8.v16p0(<16 x i8>, <16 x ptr>, <16 x i1>))";
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
    ASSERT_NE(module, nullptr) << error.getMessage().str();
    llvm::Function& function = *module->getFunction("f");
    auto machine = create_host_target_machine();
    lower_masked_memory(function, machine->getTargetTransformInfo(function));
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    EXPECT_EQ(masked_accesses_in(function), 0U);
    EXPECT_EQ(function.size(), 1U) << "one block";
}

// `guard` leaves out work-items; the steps make the bytes of lanes lie apart.
template <typename T>
void expect_only_guarded_items_are_touched(const std::string& type) {
    const Outcome built = build("kernel void k(global const " + type + "* in, global " + type +
                                "* out, int n) {\n"
                                "  int i = get_global_id(0);\n"
                                "  if (i < n && i % 3 != 1) out[5 * i + 2] = in[7 * i + 1] + 1; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr int items = 100, n = 83;
    std::vector<T> in(7 * items), out(5 * items, T{9}), expected(out);
    std::iota(in.begin(), in.end(), T{0});
    for (int i = 0; i < n; ++i)
        if (i % 3 != 1)
            expected[5 * static_cast<size_t>(i) + 2] = static_cast<T>(in[7 * static_cast<size_t>(i) + 1] + 1);
    Launch{built, "k"}.set(0, in.data()).set(1, out.data()).set(2, n).run(items, items);
    EXPECT_EQ(out, expected) << type;
}

TEST(MaskedMemory, LanesThatAreMaskedOff_TouchNothing) {
    expect_only_guarded_items_are_touched<uint8_t>("uchar");
    expect_only_guarded_items_are_touched<uint16_t>("ushort");
    expect_only_guarded_items_are_touched<uint32_t>("uint");
    expect_only_guarded_items_are_touched<uint64_t>("ulong");
    expect_only_guarded_items_are_touched<float>("float");
    expect_only_guarded_items_are_touched<double>("double");
}

} // namespace
} // namespace polder::compiler::test
