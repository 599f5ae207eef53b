// Cold built-in functions are objects of their own, which kernels share; what depends on the kernel or its program stays in the kernel's object.
#include "compiler_support.h"
#include "machine/retarget.h"
#include "module/module.h"
#include "parsed_ir.h"
#include "targets/host/code_generator.h"
#include "targets/host/cold_functions.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <llvm/IR/Verifier.h>
#include <thread>

namespace polder::compiler::test {
namespace {

// Separates the functions of `text`, and returns the symbols. `makes`: how often a function was made.
std::vector<std::string> symbols_of(const std::string& text, std::atomic<unsigned>& makes,
                                    std::string_view variant = {}, std::string_view program = {},
                                    std::chrono::milliseconds time = {}) {
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    if (!module)
        return {};
    const auto make = [&](llvm::Module& cold) -> Result<ColdFunction> {
        const unsigned number = ++makes;
        EXPECT_FALSE(llvm::verifyModule(cold, &llvm::errs()));
        std::this_thread::sleep_for(time);
        return ColdFunction{{}, "object " + std::to_string(number), uint64_t{10} * number};
    };
    const auto separated = separate_cold_functions(*module, variant, make, program);
    EXPECT_TRUE(separated);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    std::vector<std::string> symbols;
    for (const ColdFunction& function : *separated) {
        const llvm::Function* const declared = module->getFunction(function.symbol);
        EXPECT_NE(declared, nullptr);
        EXPECT_TRUE(declared->isDeclaration());
        EXPECT_TRUE(declared->hasFnAttribute(llvm::Attribute::Cold));
        symbols.push_back(function.symbol);
    }
    return symbols;
}

// A kernel that calls @cold, which is built in unless `attribute` is another one. `number`: in the code of a function that @cold calls.
std::string kernel(int number, const std::string& added = {}, const std::string& inside = {},
                   const std::string& attribute = builtin_attribute, const std::string& table = "internal constant") {
    return "source_filename = \"" + added + "\"\n" + "@table = " + table + " [2 x float] [float 1.0, float 2.0]\n" +
           "define internal float @inner(float %x) #1 {\n  %y = fadd float %x, " + std::to_string(number) +
           ".0\n  ret float %y\n}\n"
           "define internal float @cold(float %x) #0 {\n  %t = load float, ptr @table\n" +
           inside + "  %y = call float @inner(float %x)\n  %z = fmul float %y, %t\n  ret float %z\n}\n" + added +
           "declare float @llvm.fabs.f32(float)\n"
           "define void @k(ptr %p) {\n  %x = load float, ptr %p\n  %y = call float @cold(float %x)\n"
           "  store float %y, ptr %p\n  ret void\n}\n"
           "attributes #0 = { cold noinline nounwind \"" +
           attribute + "\" }\nattributes #1 = { nounwind \"" + attribute + "\" }\n";
}

TEST(ColdFunctions, OfTheSameCode_AreMadeOnce) {
    std::atomic<unsigned> makes = 0;
    const auto first = symbols_of(kernel(1001), makes);
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(makes, 1U);
    EXPECT_EQ(symbols_of(kernel(1001, "define internal void @other() {\n  ret void\n}\n"), makes), first);
    EXPECT_EQ(makes, 1U);
    EXPECT_NE(symbols_of(kernel(1002), makes), first);
    EXPECT_EQ(makes, 2U);
    EXPECT_NE(symbols_of(kernel(1001), makes, "loops"), first);
    EXPECT_EQ(makes, 3U);
}

TEST(ColdFunctions, ThatReachOtherThings_StayInTheModule) {
    std::atomic<unsigned> makes = 0;
    EXPECT_TRUE(symbols_of(kernel(1003, "", "", "of-the-program"), makes).empty());
    EXPECT_TRUE(symbols_of(kernel(1004, "", "", builtin_attribute, "internal global"), makes).empty());
    EXPECT_TRUE(symbols_of(kernel(1005, "", "", builtin_attribute, "constant"), makes).empty());
    const std::string declared = "declare void @unknown()\n";
    EXPECT_TRUE(symbols_of(kernel(1006, declared, "  call void @unknown()\n"), makes).empty());
    EXPECT_EQ(makes, 0U);
}

TEST(ColdFunctions, WhoseAddressIsTaken_StayInTheModule) {
    std::atomic<unsigned> makes = 0;
    const std::string taking = "define void @take(ptr %p) {\n  store ptr @cold, ptr %p\n  ret void\n}\n";
    EXPECT_TRUE(symbols_of(kernel(1007, taking), makes).empty());
    EXPECT_EQ(makes, 0U);
}

TEST(ColdFunctions, OfFailedCode_AreMadeAgain) {
    llvm::LLVMContext context;
    const auto module = parsed(kernel(1008), context);
    ASSERT_NE(module, nullptr);
    EXPECT_FALSE(separate_cold_functions(
        *module, {}, [](llvm::Module&) -> Result<ColdFunction> { return fail(Status::out_of_resources); }));
    std::atomic<unsigned> makes = 0;
    EXPECT_EQ(symbols_of(kernel(1008), makes).size(), 1U);
    EXPECT_EQ(makes, 1U);
}

TEST(ColdFunctions, ThatAnotherThreadMakes_AreWaitedFor) {
    std::atomic<unsigned> makes = 0;
    std::vector<std::string> first, second;
    const auto separate = [&](std::vector<std::string>& symbols) {
        symbols = symbols_of(kernel(1009), makes, {}, {}, std::chrono::milliseconds{200});
    };
    std::thread other([&] { separate(first); });
    while (makes == 0)
        std::this_thread::yield();
    separate(second);
    other.join();
    EXPECT_EQ(makes, 1U);
    EXPECT_EQ(first, second);
}

// Flags are part of the text, but not of the hash of a function in a program.
TEST(ColdFunctions, OfOneProgram_AreKnownWithoutTheirText) {
    std::atomic<unsigned> makes = 0;
    const auto with_flag = [](std::string text) {
        return text.replace(text.find("fmul float"), std::string_view{"fmul float"}.size(), "fmul nnan float");
    };
    const auto first = symbols_of(kernel(1010), makes, {}, "program");
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(symbols_of(with_flag(kernel(1010)), makes, {}, "program"), first);
    EXPECT_EQ(makes, 1U);
    EXPECT_NE(symbols_of(with_flag(kernel(1010)), makes, {}, "other program"), first);
    EXPECT_EQ(makes, 2U);
    EXPECT_NE(symbols_of(kernel(1010), makes, "loops", "program"), first);
    EXPECT_NE(symbols_of(kernel(1011), makes, {}, "program"), first);
    EXPECT_EQ(makes, 4U);
}

// Two kernels with sines.
Outcome sines(const std::string& options = {}) {
    return build("kernel void k1(global float* a) { int i = get_global_id(0); a[i] = sin(a[i]); }\n"
                 "kernel void k2(global float* a) { int i = get_global_id(0); a[i] = sin(a[i]) * 3 - a[i + 64]; }\n"
                 "float __attribute__((noinline, cold)) own(float x) { return x * 3; }\n"
                 "kernel void k3(global float* a) { int i = get_global_id(0); if (a[i] > 1e30f) a[i] = own(a[i]); }",
                 options);
}

KernelObject object_of(const Outcome& built, std::string_view name) {
    const auto& module = static_cast<const CompiledModule&>(*built.module);
    auto object = generate_code({module, module.host_bitcode(), kernel_of(built, name), {}});
    EXPECT_TRUE(object.has_value());
    return object ? std::move(*object) : KernelObject{};
}

std::vector<std::string> cold_symbols(const KernelObject& object) {
    std::vector<std::string> symbols;
    for (const ColdFunction& function : object.cold_functions)
        symbols.push_back(function.symbol);
    return symbols;
}

TEST(ColdFunctions, OfSines_AreThoseOfOtherKernels) {
    const Outcome built = sines();
    ASSERT_EQ(built.status, Status::success) << built.log;
    const KernelObject first = object_of(built, "k1"), second = object_of(built, "k2");
    ASSERT_FALSE(first.cold_functions.empty());
    EXPECT_EQ(cold_symbols(first), cold_symbols(second));
    for (const ColdFunction& function : first.cold_functions)
        EXPECT_GT(function.stack_bytes, 0U);
    EXPECT_TRUE(object_of(built, "k3").cold_functions.empty());
}

TEST(ColdFunctions, OfSines_AreLoadedOnce) {
    const Outcome built = sines();
    ASSERT_EQ(built.status, Status::success) << built.log;
    const KernelObject object = object_of(built, "k1");
    ASSERT_FALSE(object.cold_functions.empty());
    const auto first = load_cold_function(object.cold_functions.front());
    const auto second = load_cold_function(object.cold_functions.front());
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->get(), second->get());
    EXPECT_NE((*first)->address(), nullptr);
}

TEST(ColdFunctions, OfSines_HaveRightResults) {
    for (const char* options : {"", "-cl-opt-disable", "-g", "-cl-fast-relaxed-math"}) {
        const Outcome built = sines(options);
        ASSERT_EQ(built.status, Status::success) << built.log;
        constexpr size_t items = 150;
        std::vector<float> values(items + 64), found;
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = i % 7 == 0 ? std::ldexp(1.1F, static_cast<int>(i % 100)) : static_cast<float>(i) * 0.37F;
        found = values;
        float* const a = found.data();
        Launch(built, "k2").set(0, a).run(items, 50);
        for (size_t i = 0; i < items; ++i) {
            const double exact = std::sin(static_cast<double>(values[i])) * 3 - static_cast<double>(values[i + 64]);
            EXPECT_NEAR(found[i], exact, 1e-5 * std::max(1.0, std::abs(exact))) << options << ", element " << i;
        }
    }
}

}  // namespace
}  // namespace polder::compiler::test
