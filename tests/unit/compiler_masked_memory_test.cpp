// Masked accesses that the processor has no instruction for: no branches, and lanes that are masked off touch nothing.
#include "compiler_support.h"
#include "machine/host.h"
#include "targets/host/instructions/masked_memory.h"
#include "targets/host/instructions/register_tables.h"

#include <cstring>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <numeric>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace polder::compiler::test {
namespace {

std::vector<std::string> masked_accesses_in(const llvm::Function& function) {
    std::vector<std::string> names;
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
            if (const llvm::StringRef name = call->getCalledFunction()->getName(); name.starts_with("llvm.masked."))
                names.push_back(name.str());
    return names;
}

bool gathers_words(const llvm::TargetTransformInfo& target, llvm::LLVMContext& context) {
    auto* const words = llvm::FixedVectorType::get(llvm::Type::getInt32Ty(context), 16);
    return target.isLegalMaskedGather(words, llvm::Align(4)) &&
           !target.forceScalarizeMaskedGather(words, llvm::Align(4));
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
    const llvm::TargetTransformInfo target = machine->getTargetTransformInfo(function);
    lower_masked_memory(function, target);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    EXPECT_EQ(masked_accesses_in(function), gathers_words(target, context)
                                                ? std::vector<std::string>{"llvm.masked.gather.v16i32.v16p0"}
                                                : std::vector<std::string>{});
    EXPECT_EQ(function.size(), 1U) << "one block";
}

// An index of 32 bits stays one: 16 lanes are one gather, not two.
TEST(MaskedMemory, GathersOfBytesWithNarrowIndices_HaveNarrowIndices) {
    const char* text = R"(
        define <16 x i16> @f(ptr %table, <16 x i32> %at, <16 x i1> %mask) {
          %index = sext <16 x i32> %at to <16 x i64>
          %places = getelementptr i8, ptr %table, <16 x i64> %index
          %x = call <16 x i8> @llvm.masked.gather.v16i8.v16p0(<16 x ptr> align 1 %places, <16 x i1> %mask, <16 x i8> poison)
          %pairs = getelementptr i16, ptr %table, <16 x i64> %index
          %y = call <16 x i16> @llvm.masked.gather.v16i16.v16p0(<16 x ptr> align 2 %pairs, <16 x i1> %mask, <16 x i16> poison)
          %wide = zext <16 x i8> %x to <16 x i16>
          %sum = add <16 x i16> %wide, %y
          ret <16 x i16> %sum
        }
        declare <16 x i8> @llvm.masked.gather.v16i8.v16p0(<16 x ptr>, <16 x i1>, <16 x i8>)
        declare <16 x i16> @llvm.masked.gather.v16i16.v16p0(<16 x ptr>, <16 x i1>, <16 x i16>))";
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
    ASSERT_NE(module, nullptr) << error.getMessage().str();
    llvm::Function& function = *module->getFunction("f");
    auto machine = create_host_target_machine();
    const llvm::TargetTransformInfo target = machine->getTargetTransformInfo(function);
    if (!gathers_words(target, context))
        GTEST_SKIP() << "the processor gathers no words";
    lower_masked_memory(function, target);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    size_t narrow = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction);
            address && address->getType()->isVectorTy() && address->getSourceElementType()->isIntegerTy(32))
            narrow += llvm::isa<llvm::SExtInst>(address->getOperand(1)) ? 1 : 0;
    EXPECT_EQ(narrow, 2U);
}

// Where gathers are slow: loads of single bytes, but under a mask, which no load of one lane knows.
TEST(MaskedMemory, GathersOfBytesOfAllLanes_AreLoadsOneByOneWhereThoseAreFaster) {
    const auto accesses_with = [](const std::string& type, const std::string& mask, ByteGathers bytes) {
        const std::string vector = "<16 x " + type + ">";
        const std::string text = "define " + vector + " @f(<16 x ptr> %from, <16 x i1> %mask) {\n  %x = call " +
                                 vector + " @llvm.masked.gather.v16" + type +
                                 ".v16p0(<16 x ptr> align 4 %from, <16 x i1> " + mask + ", " + vector +
                                 " poison)\n  ret " + vector + " %x\n}\ndeclare " + vector +
                                 " @llvm.masked.gather.v16" + type + ".v16p0(<16 x ptr>, <16 x i1>, " + vector + ")\n";
        llvm::LLVMContext context;
        llvm::SMDiagnostic error;
        const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
        if (!module)
            return std::vector<std::string>{error.getMessage().str()};
        llvm::Function& function = *module->getFunction("f");
        auto machine = create_host_target_machine();
        const llvm::TargetTransformInfo target = machine->getTargetTransformInfo(function);
        lower_masked_memory(function, target, bytes);
        EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
        if (!gathers_words(target, context))
            return std::vector<std::string>{"none"};
        return masked_accesses_in(function);
    };
    const std::string all = "splat (i1 true)";
    const std::vector<std::string> in_words = accesses_with("i8", all, ByteGathers::in_words);
    if (in_words == std::vector<std::string>{"none"})
        GTEST_SKIP() << "the processor gathers no words";
    EXPECT_EQ(in_words, std::vector<std::string>{"llvm.masked.gather.v16i32.v16p0"});
    EXPECT_EQ(accesses_with("i8", all, ByteGathers::one_by_one), std::vector<std::string>{});
    EXPECT_EQ(accesses_with("i8", "%mask", ByteGathers::one_by_one), in_words);
    EXPECT_EQ(accesses_with("i16", all, ByteGathers::one_by_one), in_words);
}

TEST(MaskedMemory, GathersFromSmallTables_ArePermutationsOfRegisters) {
    // Of the last one, the index is too large.
    const char* text = R"(
        define <16 x i8> @f(ptr %table, <16 x i8> %at, <16 x i32> %wide, ptr %words, ptr %out, <16 x i1> %mask) {
          %index = zext <16 x i8> %at to <16 x i64>
          %places = getelementptr i8, ptr %table, <16 x i64> %index
          %x = call <16 x i8> @llvm.masked.gather.v16i8.v16p0(<16 x ptr> align 1 %places, <16 x i1> splat (i1 true), <16 x i8> poison)
          %few = and <16 x i32> %wide, splat (i32 63)
          %few.index = zext <16 x i32> %few to <16 x i64>
          %few.places = getelementptr i32, ptr %words, <16 x i64> %few.index
          %y = call <16 x i32> @llvm.masked.gather.v16i32.v16p0(<16 x ptr> align 4 %few.places, <16 x i1> %mask, <16 x i32> zeroinitializer)
          %many.places = getelementptr i32, ptr %words, <16 x i64> %index
          %z = call <16 x i32> @llvm.masked.gather.v16i32.v16p0(<16 x ptr> align 4 %many.places, <16 x i1> %mask, <16 x i32> %y)
          store <16 x i32> %z, ptr %out
          ret <16 x i8> %x
        }
        declare <16 x i8> @llvm.masked.gather.v16i8.v16p0(<16 x ptr>, <16 x i1>, <16 x i8>)
        declare <16 x i32> @llvm.masked.gather.v16i32.v16p0(<16 x ptr>, <16 x i1>, <16 x i32>))";
    const auto permutations_for = [&](const std::string& cpu) {
        llvm::LLVMContext context;
        llvm::SMDiagnostic error;
        const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
        EXPECT_NE(module, nullptr) << error.getMessage().str();
        Host target = host();
        target.cpu = cpu;
        target.features.clear();
        llvm::Function& function = *module->getFunction("f");
        permute_small_tables(function, *create_target_machine(target));
        EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
        std::vector<std::string> names;
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
                if (const llvm::StringRef name = call->getCalledFunction()->getName(); name.contains("vpermi2var"))
                    names.push_back(name.str());
        return names;
    };
    const std::string bytes = "llvm.x86.avx512.vpermi2var.qi.512", words = "llvm.x86.avx512.vpermi2var.d.512";
    EXPECT_EQ(permutations_for("znver4"), (std::vector{bytes, bytes, words, words}));
    EXPECT_EQ(permutations_for("skylake-avx512"), (std::vector{words, words}));
    EXPECT_EQ(permutations_for("haswell"), std::vector<std::string>{});
}

// The text of `@f(ptr %table, <8 x i32> %at)` with these lines, after both passes for the processor.
std::string lowered(const std::string& lines, const std::string& cpu) {
    const std::string text = "define <8 x i8> @f(ptr %table, <8 x i32> %at) {\n" + lines + R"(
          %x = call <8 x i8> @llvm.masked.gather.v8i8.v8p0(<8 x ptr> align 1 %places, <8 x i1> splat (i1 true), <8 x i8> poison)
          ret <8 x i8> %x
        }
        declare <8 x i8> @llvm.masked.gather.v8i8.v8p0(<8 x ptr>, <8 x i1>, <8 x i8>))";
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
    EXPECT_NE(module, nullptr) << error.getMessage().str();
    Host target = host();
    target.cpu = cpu;
    target.features.clear();
    const auto machine = create_target_machine(target);
    llvm::Function& function = *module->getFunction("f");
    permute_small_tables(function, *machine);
    lower_masked_memory(function, machine->getTargetTransformInfo(function));
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    std::string result;
    llvm::raw_string_ostream stream(result);
    module->print(stream, nullptr);
    return result;
}

size_t times_in(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

TEST(MaskedMemory, GathersFromSmallTablesOfBytes_ArePermutationsWithoutAvx512) {
    const auto permutations = [](const std::string& cpu, unsigned last) {
        const std::string lines = "%few = and <8 x i32> %at, splat (i32 " + std::to_string(last) + R"()
            %index = zext <8 x i32> %few to <8 x i64>
            %places = getelementptr i8, ptr %table, <8 x i64> %index)";
        return times_in(lowered(lines, cpu), "call <16 x i8> @llvm.x86.ssse3.pshuf.b.128");
    };
    for (const char* cpu : {"x86-64-v2", "x86-64-v3", "haswell", "skylake-avx512"}) {
        EXPECT_EQ(permutations(cpu, 15), 1U) << cpu;
        EXPECT_EQ(permutations(cpu, 31), 2U) << cpu;
        EXPECT_EQ(permutations(cpu, 63), 4U) << cpu;
        EXPECT_EQ(permutations(cpu, 127), 0U) << cpu;
    }
    EXPECT_EQ(permutations("x86-64", 15), 0U);
}

// The processor adds the base of all lanes and the index of one when it loads.
TEST(MaskedMemory, LanesFromOneBase_HaveIndicesAndNoAddresses) {
    const std::string lines = R"(
        %index = EXTENDED <8 x i32> %at to <8 x i64>
        %places = getelementptr i8, ptr %table, <8 x i64> %index)";
    const auto with = [&](const std::string& extension) {
        std::string text = lines;
        return lowered(text.replace(text.find("EXTENDED"), 8, extension), "x86-64-v2");
    };
    EXPECT_EQ(times_in(with("zext"), "extractelement <8 x i32>"), 8U);
    EXPECT_EQ(times_in(with("zext"), "extractelement <8 x ptr>"), 0U);
    EXPECT_EQ(times_in(with("sext"), "extractelement <8 x i64>"), 8U);
    EXPECT_EQ(times_in(with("sext"), "extractelement <8 x ptr>"), 0U);
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

// Two pages of memory between two that may not be accessed.
class GuardedPages {
public:
    GuardedPages()
        : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
          all_(static_cast<uint8_t*>(mmap(nullptr, 4 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        EXPECT_EQ(mprotect(all_ + page_, 2 * page_, PROT_READ | PROT_WRITE), 0);
    }
    ~GuardedPages() { munmap(all_, 4 * page_); }
    GuardedPages(const GuardedPages&) = delete;
    GuardedPages& operator=(const GuardedPages&) = delete;

    [[nodiscard]] uint8_t* begin() const { return all_ + page_; }
    [[nodiscard]] uint8_t* end() const { return begin() + 2 * page_; }

private:
    size_t page_;
    uint8_t* all_;
};

// A table that begins where memory begins, and one that ends where it ends, of elements at all places in a word.
template <typename T>
void expect_right_table(const std::string& type) {
    const Outcome built = build("kernel void k(global const " + type + "* table, global const int* at, global " + type +
                                "* out, int n, global " + type +
                                "* some) {\n"
                                "  int i = get_global_id(0);\n"
                                "  out[i] = table[at[i]];\n"
                                "  if (at[i] % 3) some[i] = table[n - 1 - at[i]]; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr int items = 128, n = 61;
    const GuardedPages pages;
    for (T* const table : {reinterpret_cast<T*>(pages.begin()), reinterpret_cast<T*>(pages.end()) - n}) {
        std::vector<int> at(items);
        std::vector<T> out(items), some(items, T{3}), expected(items), expected_some(some);
        for (int i = 0; i < n; ++i)
            table[i] = static_cast<T>(i * 40503 + 77);
        for (int i = 0; i < items; ++i) {
            const auto item = static_cast<size_t>(i);
            at[item] = i * 37 % n;
            expected[item] = table[at[item]];
            if (at[item] % 3 != 0)
                expected_some[item] = table[n - 1 - at[item]];
        }
        Launch{built, "k"}
            .set(0, table)
            .set(1, at.data())
            .set(2, out.data())
            .set(3, n)
            .set(4, some.data())
            .run(items, items);
        EXPECT_EQ(out, expected) << type;
        EXPECT_EQ(some, expected_some) << type;
    }
}

TEST(MaskedMemory, TablesAtTheEndsOfMemory_AreReadWithoutWhatIsBeside) {
    expect_right_table<uint8_t>("uchar");
    expect_right_table<int8_t>("char");
    expect_right_table<uint16_t>("ushort");
    expect_right_table<int16_t>("short");
    expect_right_table<uint32_t>("uint");
}

// Tables that the processor may keep in registers: indices of few bits, of whole tables and of parts, some of them under a guard.
template <typename T>
void expect_right_small_table(const std::string& type, const std::string& mask, const size_t count) {
    const Outcome built = build("kernel void k(global const " + type + "* table, global const uchar* at, global " +
                                type + "* out, global " + type +
                                "* some) {\n"
                                "  int i = get_global_id(0);\n"
                                "  out[i] = table[at[i] & " +
                                mask +
                                "];\n"
                                "  if (at[i] % 3) some[i] = table[(at[i] + 5) & " +
                                mask + "] + table[1 + (at[i] & (" + mask + " >> 1))]; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr int items = 400;
    const GuardedPages pages;
    for (T* const table : {reinterpret_cast<T*>(pages.begin()), reinterpret_cast<T*>(pages.end()) - count,
                           reinterpret_cast<T*>(pages.begin() + (pages.end() - pages.begin()) / 2) - count / 2}) {
        std::vector<uint8_t> at(items);
        std::vector<T> out(items), some(items, T{3}), expected(items), expected_some(some);
        for (size_t i = 0; i < count; ++i)
            table[i] = static_cast<T>(i * 40503 + 77);
        for (int i = 0; i < items; ++i) {
            const auto item = static_cast<size_t>(i);
            at[item] = static_cast<uint8_t>(i * 37);
            expected[item] = table[at[item] % count];
            if (at[item] % 3 != 0)
                expected_some[item] =
                    static_cast<T>(table[(at[item] + 5U) % count] + table[1 + at[item] % (count / 2)]);
        }
        Launch{built, "k"}.set(0, table).set(1, at.data()).set(2, out.data()).set(3, some.data()).run(items, items);
        EXPECT_EQ(out, expected) << type << mask;
        EXPECT_EQ(some, expected_some) << type << mask;
    }
}

TEST(MaskedMemory, SmallTablesAnywhereInMemory_AreReadRightly) {
    expect_right_small_table<uint8_t>("uchar", "255", 256);
    expect_right_small_table<uint8_t>("uchar", "127", 128);
    expect_right_small_table<int8_t>("char", "15", 16);
    expect_right_small_table<uint16_t>("ushort", "127", 128);
    expect_right_small_table<uint32_t>("uint", "63", 64);
    expect_right_small_table<uint32_t>("uint", "31", 32);
    expect_right_small_table<float>("float", "15", 16);
    expect_right_small_table<uint64_t>("ulong", "31", 32);
    expect_right_small_table<double>("double", "7", 8);
}

// Members that are not aligned to their size may lie in two words.
TEST(MaskedMemory, PackedStructures_AreReadWhole) {
    const Outcome built = build(R"(
        typedef struct __attribute__((packed)) { uchar a; ushort b; } P;
        kernel void k(global const P* table, global const int* at, global ushort* out) {
            out[get_global_id(0)] = table[at[get_global_id(0)]].b;
        })");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr size_t items = 64, n = 50;
    std::vector<uint8_t> table(3 * n);
    for (size_t i = 0; i < table.size(); ++i)
        table[i] = static_cast<uint8_t>(i * 91 + 5);
    std::vector<int> at(items);
    std::vector<uint16_t> out(items), expected(items);
    for (size_t i = 0; i < items; ++i) {
        at[i] = static_cast<int>(i * 13 % n);
        std::memcpy(&expected[i], &table[3 * static_cast<size_t>(at[i]) + 1], sizeof expected[i]);
    }
    Launch{built, "k"}.set(0, table.data()).set(1, at.data()).set(2, out.data()).run(items, items);
    EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace polder::compiler::test
