// Lanes whose addresses are a constant step apart: structures, vectors, every third number, rows in descending order. They are
// accessed together, and nothing else is: buffers end where the process has no memory, and the bytes between stay unchanged.
// Structures whose places follow no step are loaded at once by each lane.
#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "workgroup_all_bytes.h"
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <numeric>
#include <regex>
#include <sys/mman.h>
#include <unistd.h>

namespace polder::compiler::workgroup::test {
namespace {

// `count` numbers between two pages that may not be touched, with no byte to spare before the second, or after the first.
template <class T>
class Fenced {
public:
    enum class Side : uint8_t { before, after };

    Fenced(size_t count, Side side) : count_(count) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        const size_t bytes = (count * sizeof(T) + page - 1) / page * page;
        size_ = bytes + 2 * page;
        base_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        EXPECT_EQ(mprotect(base_ + page, bytes, PROT_READ | PROT_WRITE), 0);
        std::byte* first = side == Side::before ? base_ + page + bytes - count * sizeof(T) : base_ + page;
        data_ = reinterpret_cast<T*>(first);
        std::iota(data_, data_ + count, T{1});
    }
    Fenced(const Fenced&) = delete;
    Fenced& operator=(const Fenced&) = delete;
    ~Fenced() { munmap(base_, size_); }

    T* data() { return data_; }
    T& operator[](size_t i) { return data_[i]; }
    [[nodiscard]] std::vector<T> values() const { return {data_, data_ + count_}; }

private:
    size_t count_, size_;
    std::byte* base_;
    T* data_;
};

std::string number(int64_t value) { return std::to_string(value); }

struct Case {
    int64_t step;
    bool is_guarded;  // by a condition that some lanes do not fulfil
    bool is_in_place;  // all of each structure is written, where it was read
};

// Work-item i reads member m of structure i, for each m, and writes member `step - 1 - m` of structure i.
std::string kernel_of(const std::string& type, const Case& of) {
    std::string source = "kernel void k(global " + type + "* in, global " + type +
                         "* out, int n) {\n"
                         "  int i = get_global_id(0);\n";
    if (of.is_guarded)
        source += "  if (i < n && i != 21) {\n";
    for (int64_t m = 0; m < of.step; ++m)
        source += "  " + type + " x" + number(m) + " = in[" + number(of.step) + " * i + " + number(m) + "];\n";
    for (int64_t m = 0; m < of.step; ++m)
        source += "  " + std::string(of.is_in_place ? "in" : "out") + "[" + number(of.step) + " * i + " +
                  number(of.step - 1 - m) + "] = x" + number(m) + " + (" + type + ")" + number(m + 1) + ";\n";
    return source + (of.is_guarded ? "  }\n}" : "}");
}

template <class T>
void expect_steps_are_right(const std::string& type, typename Fenced<T>::Side side) {
    constexpr size_t items = 53;
    constexpr int n = 45;
    for (const int64_t step : {1, 2, 3, 5, 8, 9})
        for (const bool is_guarded : {false, true})
            for (const bool is_in_place : {false, true}) {
                const Case of{step, is_guarded, is_in_place};
                Compiled program(kernel_of(type, of));
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible),
                          "");
                const size_t count = items * static_cast<size_t>(step);
                Fenced<T> in(count, side), out(count, side);
                std::vector<T> expected = is_in_place ? in.values() : out.values();
                for (size_t i = 0; i < items; ++i)
                    for (size_t m = 0; m < static_cast<size_t>(step); ++m)
                        if (!is_guarded || (i < n && i != 21))
                            expected[(i + 1) * static_cast<size_t>(step) - 1 - m] =
                                static_cast<T>(in[i * static_cast<size_t>(step) + m] + static_cast<T>(m + 1));
                program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(n));
                ASSERT_EQ(is_in_place ? in.values() : out.values(), expected)
                    << type << ", step " << step << (is_guarded ? ", guarded" : "")
                    << (is_in_place ? ", in place" : "");
            }
}

TEST(Steps, OfBytes) { expect_steps_are_right<uint8_t>("uchar", Fenced<uint8_t>::Side::before); }
TEST(Steps, OfShorts) { expect_steps_are_right<uint16_t>("ushort", Fenced<uint16_t>::Side::after); }
TEST(Steps, OfFloats) { expect_steps_are_right<float>("float", Fenced<float>::Side::before); }
TEST(Steps, OfDoubles) { expect_steps_are_right<double>("double", Fenced<double>::Side::before); }

TEST(Steps, MembersThatAreNotAllWritten_LeaveTheOthersAlone) {
    Compiled program(R"(
        kernel void k(global float4* v, global float* every_third, int n) {
            int i = get_global_id(0);
            v[i].y = v[i].x + v[i].w;
            if (i < n) every_third[3 * i] += every_third[3 * i + 2];
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    constexpr size_t items = 64;
    constexpr int n = 40;
    using Side = Fenced<float>::Side;
    Fenced<float> v(4 * items, Side::before), every_third(3 * n, Side::before);
    std::vector<float> expected_v = v.values(), expected_third = every_third.values();
    for (size_t i = 0; i < items; ++i)
        expected_v[4 * i + 1] = expected_v[4 * i] + expected_v[4 * i + 3];
    for (size_t i = 0; i < n; ++i)
        expected_third[3 * i] += expected_third[3 * i + 2];
    program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(v.data()).add(every_third.data()).add(n));
    EXPECT_EQ(v.values(), expected_v);
    EXPECT_EQ(every_third.values(), expected_third);
}

TEST(Steps, VectorsOfFourAreLoadedAndStoredWithoutGathers) {
    Compiled program("kernel void k(global float4* v) { int i = get_global_id(0); v[i] = v[i].wzyx * v[i]; }",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_NE(program.optimised().find("fmul <16 x float>"), std::string::npos) << program.optimised();
    EXPECT_EQ(program.optimised().find("llvm.masked."), std::string::npos) << program.optimised();
}

TEST(Steps, LastElementsAreReadWhereTheBufferEnds) {
    // One member of each structure alone, the first or the last.
    for (const int member : {0, 6}) {
        Compiled program("kernel void k(global const int* in, global int* out) {\n"
                         "  int i = get_global_id(0); out[i] = in[7 * i] * 3; }");
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        constexpr size_t items = 48;
        using Side = Fenced<int>::Side;
        Fenced<int> in(7 * (items - 1) + 1, member == 0 ? Side::before : Side::after);
        std::vector<int> out(items), expected(items);
        for (size_t i = 0; i < items; ++i)
            expected[i] = in[7 * i] * 3;
        program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(in.data()).add(out.data()));
        EXPECT_EQ(out, expected);
    }
}

// LLVM narrows loads whose last elements are not used, so that running the code would not show them.
TEST(Steps, LoadsBeginAndEndWithTheFirstAndLastElementOfTheirGroup) {
    constexpr unsigned lanes = 16;
    for (int64_t step = 2; step <= lane_step_max; ++step)
        for (int64_t span = 0; span < step; ++span)
            for (int64_t member = 0; member <= span; ++member) {
                llvm::LLVMContext context;
                llvm::Module module("loads", context);
                llvm::Type* const element = llvm::Type::getFloatTy(context);
                auto* type = llvm::FunctionType::get(element, {llvm::PointerType::get(context, 0)}, false);
                auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
                llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", function));
                llvm::LoadInst* const load = builder.CreateLoad(element, function->getArg(0));
                LaneAccess access;
                access.step = step;
                access.member = member;
                access.span = span;
                static_cast<void>(load_with_step(builder, *load, access, function->getArg(0), lanes));
                int64_t begin = 0, end = 0;  // in bytes from this member's first place
                for (llvm::Instruction& instruction : llvm::instructions(*function))
                    if (auto* part = llvm::dyn_cast<llvm::LoadInst>(&instruction); part && part != load) {
                        const llvm::DataLayout& layout = module.getDataLayout();
                        llvm::APInt offset(64, 0);
                        part->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
                        begin = std::min(begin, offset.getSExtValue());
                        end = std::max(end, offset.getSExtValue() +
                                                static_cast<int64_t>(layout.getTypeStoreSize(part->getType())));
                    }
                EXPECT_EQ(begin, -4 * member) << "step " << step << ", span " << span;
                // The wide loads reach the last element that is used, if no other member of the group is further.
                EXPECT_LE(end, 4 * (static_cast<int64_t>(lanes - 1) * step + span + 1 - member))
                    << "step " << step << ", span " << span << ", member " << member;
            }
}

TEST(Steps, RowsBackwards) {
    Compiled program(R"(
        kernel void k(global const short* in, global short* out, int n, int shown) {
            int i = get_global_id(0);
            out[n - 1 - i] = in[n - 1 - i] * 2;
            if (i < shown) out[n + i] = in[n - 1 - i];
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    constexpr int n = 70, shown = 37;
    using Side = Fenced<int16_t>::Side;
    for (const Side side : {Side::before, Side::after}) {
        Fenced<int16_t> in(n, side), out(n + shown, side);
        std::vector<int16_t> expected(n + shown);
        for (size_t i = 0; i < n; ++i)
            expected[i] = static_cast<int16_t>(in[i] * 2);
        for (size_t i = 0; i < shown; ++i)
            expected[n + i] = in[n - 1 - i];
        program.run({1, {n, 1, 1}, {n, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(n).add(shown));
        EXPECT_EQ(out.values(), expected);
    }
}

// mad24 shifts its operands up and down again, so that only a check at run time finds rows.
TEST(Steps, RowsThatAreOnlyLikely_AreCheckedAtRunTime) {
    Compiled program(R"(
        kernel void k(global const uchar* in, global uchar* out, int columns, int rows, int step) {
            int x = get_global_id(0);
            if (x >= columns) return;
            int at = ((x << 8 >> 8) * 3);
            for (int y = 0; y < rows; ++y, at += step)
                out[at] = in[at] + in[at + 1] + in[at + 2];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_NE(program.optimised().find("together"), std::string::npos) << program.optimised();
    // What inactive lanes compute may be poison, and the run-time check is a branch.
    EXPECT_TRUE(std::regex_search(program.optimised(), std::regex("freeze (i32|<[0-9]+ x ptr)")))
        << program.optimised();
    constexpr int columns = 43, rows = 3, step = 3 * columns + 5;
    using Side = Fenced<uint8_t>::Side;
    Fenced<uint8_t> in(step * (rows - 1) + 3 * columns, Side::before),
        out(step * (rows - 1) + 3 * columns, Side::before);
    std::vector<uint8_t> expected = out.values();
    for (size_t y = 0; y < rows; ++y)
        for (size_t x = 0; x < columns; ++x) {
            const size_t at = y * step + 3 * x;
            expected[at] = static_cast<uint8_t>(in[at] + in[at + 1] + in[at + 2]);
        }
    program.run({1, {64, 1, 1}, {64, 1, 1}},
                Arguments().add(in.data()).add(out.data()).add(columns).add(rows).add(step));
    EXPECT_EQ(out.values(), expected);
}

struct Wrap {
    const char* index;  // of `at`, which is first + i, or of i
    uint32_t (*of)(uint32_t first, uint32_t i);
    uint32_t edge;  // of `first`, where the index leaves the range of its type
};

// One comparison of the first lane's number decides for all lanes whether a number of 32 bits wraps around among them.
TEST(Steps, NumbersThatWrapAround_AreAccessedApart) {
    const AllBytes bytes;
    constexpr uint32_t items = 40;
    const auto by_four = [](uint32_t first, uint32_t i) { return (first + i) * 4; };
    const auto backwards = [](uint32_t first, uint32_t i) { return first - i; };
    const auto twice_backwards = [](uint32_t first, uint32_t i) { return (first - i) * 2; };
    for (const auto& [type, cases] :
         {std::pair{"int", std::array{Wrap{"at * 4", by_four, 1U << 29}, Wrap{"first - i", backwards, 1U << 31},
                                      Wrap{"(first - i) * 2", twice_backwards, 1U << 30}}},
          std::pair{"uint", std::array{Wrap{"at * 4", by_four, 1U << 30}, Wrap{"first - i", backwards, 0U},
                                       Wrap{"(first - i) * 2", twice_backwards, 0U}}}})
        for (const Wrap& wrap : cases)
            for (const char* guard : {"", "if (i % 7 != 2) "}) {
                Compiled program("kernel void k(global const uchar* in, global uchar* out, uint first) {\n"
                                 "  uint i = get_global_id(0), at = first + i;\n  " +
                                 std::string(guard) + "out[i] = in[(" + type + ")(" + wrap.index + ")] + 1;\n}");
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible),
                          "");
                const bool is_signed = std::string(type) == "int";
                for (uint32_t before = 0; before < items; ++before) {
                    const uint32_t first = wrap.of == static_cast<uint32_t (*)(uint32_t, uint32_t)>(by_four)
                                               ? wrap.edge - before
                                               : wrap.edge + before;
                    std::vector<uint8_t> out(items, 7), expected = out;
                    for (uint32_t i = 0; i < items; ++i) {
                        const uint32_t at = wrap.of(first, i);
                        const uint8_t* place =
                            is_signed ? bytes.signed_zero() + static_cast<int32_t>(at) : bytes.unsigned_zero() + at;
                        if (*guard == 0 || i % 7 != 2)
                            expected[i] = static_cast<uint8_t>(*place + 1);
                    }
                    const uint8_t* in = is_signed ? bytes.signed_zero() : bytes.unsigned_zero();
                    program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(in).add(out.data()).add(first));
                    ASSERT_EQ(out, expected) << type << " " << wrap.index << " " << guard << before;
                }
            }
}

// As above, of a number that a loop changes.
TEST(Steps, NumbersOfALoopThatWrapAround_AreAccessedApart) {
    const AllBytes bytes;
    constexpr uint32_t items = 40;
    for (const bool is_signed : {true, false}) {
        Compiled program(std::string("kernel void k(global const uchar* in, global uchar* out, uint first, uint by) {\n"
                                     "  uint i = get_global_id(0), at = first + i;\n  uchar sum = 0;\n"
                                     "  for (uint r = 0; r < 2 + i % 3; ++r, at += by) sum = sum * 3 + in[(") +
                         (is_signed ? "int" : "uint") + ")at];\n  out[i] = sum;\n}");
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        for (uint32_t before = 1; before < items; ++before) {
            const uint32_t first = (1U << 31) - items - before, by = is_signed ? items : 1U << 30;
            std::vector<uint8_t> out(items), expected(items);
            for (uint32_t i = 0; i < items; ++i)
                for (uint32_t r = 0; r < 2 + i % 3; ++r) {
                    const uint32_t at = first + i + r * by;
                    const uint8_t* place =
                        is_signed ? bytes.signed_zero() + static_cast<int32_t>(at) : bytes.unsigned_zero() + at;
                    expected[i] = static_cast<uint8_t>(expected[i] * 3 + *place);
                }
            const uint8_t* in = is_signed ? bytes.signed_zero() : bytes.unsigned_zero();
            program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(in).add(out.data()).add(first).add(by));
            ASSERT_EQ(out, expected) << (is_signed ? "int " : "uint ") << before;
        }
    }
}

TEST(Steps, NumbersThatAreExtended_AreCheckedByOneComparison) {
    for (const char* body : {"int at = i << 2; sum = in[at];", "for (uint at = i; at < n; at += s) sum += in[at];"}) {
        Compiled program("kernel void k(global const float* in, global float* out, int n, int s) {\n"
                         "  int i = get_global_id(0); float sum = 0;\n  " +
                             std::string(body) + "\n  out[i] = sum;\n}",
                         processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_NE(program.optimised().find("together"), std::string::npos) << program.optimised();
        EXPECT_FALSE(std::regex_search(program.optimised(), std::regex("icmp \\w+ <16 x (ptr|i64)")))
            << body << program.optimised();
    }
}

// Elements side by side, at places that follow no step: each lane loads its structure at once. Vectors are aligned to their size.
template <class T>
void expect_structures_are_right(const std::string& type) {
    constexpr size_t items = 53, structures = 40;
    constexpr int n = 45;
    const auto expect_right = [&](size_t members, bool is_guarded, bool is_vector) {
        std::string source = "kernel void k(global const " + type + "* in, global " + type +
                             "* out, global int* at, int n) {\n  int i = get_global_id(0);\n";
        // The store keeps the place known to all lanes, those behind the guard included.
        source += "  int place = " + number(static_cast<int64_t>(members)) + " * at[i];\n  at[i] = place;\n";
        if (is_guarded)
            source += "  if (i < n && i % 7 != 3) {\n";
        if (is_vector) {
            const std::string vector = type + number(static_cast<int64_t>(members));
            source += "  " + vector + " x = *(global const " + vector + "*)(in + place);\n";
        }
        // All loads before the stores, which might change the others.
        for (size_t m = members; m-- > 0 && !is_vector;)
            source += "  " + type + " x" + std::to_string(m) + " = in[place + " + std::to_string(m) + "];\n";
        for (size_t m = 0; m < members; ++m)
            source += "  out[" + std::to_string(m * items) + " + i] = x" + (is_vector ? ".s" : "") + std::to_string(m) +
                      ";\n";
        Compiled program(source + (is_guarded ? "  }\n}" : "}"));
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        for (const auto side : {Fenced<T>::Side::before, Fenced<T>::Side::after}) {
            Fenced<T> in(structures * members, side), out(items * members, side);
            Fenced<int> at(items, Fenced<int>::Side::before);
            std::vector<T> expected = out.values();
            for (size_t i = 0; i < items; ++i) {
                const bool is_read = !is_guarded || (i < n && i % 7 != 3);
                // Both ends of `in`; where nothing is read, no place of it.
                at[i] = is_read ? static_cast<int>(i * 17 % structures) : 1 << 27;
                for (size_t m = 0; is_read && m < members; ++m)
                    expected[m * items + i] = in[members * static_cast<size_t>(at[i]) + m];
            }
            program.run({1, {items, 1, 1}, {items, 1, 1}},
                        Arguments().add(in.data()).add(out.data()).add(at.data()).add(n));
            ASSERT_EQ(out.values(), expected) << type << ", " << members << " members"
                                              << (is_guarded ? ", guarded" : "") << (is_vector ? ", a vector" : "");
        }
    };
    for (const bool is_guarded : {false, true}) {
        for (const size_t members : {2, 3, 4, 5, 8})
            expect_right(members, is_guarded, false);
        for (const size_t members : {2, 4, 8})
            expect_right(members, is_guarded, true);
    }
}

TEST(Structures, OfBytes) { expect_structures_are_right<uint8_t>("uchar"); }
TEST(Structures, OfShorts) { expect_structures_are_right<uint16_t>("ushort"); }
TEST(Structures, OfFloats) { expect_structures_are_right<float>("float"); }
TEST(Structures, OfDoubles) { expect_structures_are_right<double>("double"); }

TEST(Structures, AreLoadedWithoutGathers) {
    Compiled program(
        "kernel void k(global const float4* in, global float4* out, global const int* at, float factor) {\n"
        "  int i = get_global_id(0); float4 v = in[at[i]]; out[i] = v * v.wzyx * factor + v; }",
        processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_NE(program.optimised().find("load <4 x float>"), std::string::npos) << program.optimised();
    EXPECT_EQ(program.optimised().find("llvm.masked."), std::string::npos) << program.optimised();
}

// A store to a member between the loads of a structure is seen by the loads behind it.
// Coordinates that were converted are likely a row. A copy of structures of four words keeps the order of memory (decision 183).
TEST(Structures, OfALikelyRow_AreCopiedInTheOrderOfMemory) {
    Compiled program(R"(
        kernel void k(global const float4* in, global float4* out, int last) {
            out[get_global_id(0)] = in[clamp((int)floor((float)get_global_id(0) + 0.5f), 0, last)];
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(std::regex_search(program.optimised(), std::regex("phi <(32|64) x float>"))) << program.optimised();
}

TEST(Structures, ThatChangeBetweenTheirLoads_AreLoadedApart) {
    Compiled program(R"(
        kernel void k(global int* in, global int* out, global const int* at, int changed) {
            int i = get_global_id(0);
            global int* from = in + 4 * at[i];
            int first = from[0] + from[1];
            from[changed] = 1000 + i;
            out[i] = first + 2 * from[2] + 3 * from[3];
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    constexpr size_t items = 48;
    using Side = Fenced<int>::Side;
    for (const int changed : {2, 3}) {
        Fenced<int> in(4 * items, Side::before), at(items, Side::before);
        std::vector<int> out(items), expected(items);
        for (size_t i = 0; i < items; ++i) {
            at[i] = static_cast<int>(i * 5 % items);
            const size_t from = 4 * static_cast<size_t>(at[i]);
            const int written = 1000 + static_cast<int>(i);
            expected[i] = in[from] + in[from + 1] + 2 * (changed == 2 ? written : in[from + 2]) +
                          3 * (changed == 3 ? written : in[from + 3]);
        }
        program.run({1, {items, 1, 1}, {items, 1, 1}},
                    Arguments().add(in.data()).add(out.data()).add(at.data()).add(changed));
        EXPECT_EQ(out, expected) << changed;
    }
}

// Lanes that are not active read zeros, which are as aligned as the structures are said to be: doubles of vectors to 32 bytes. A stack that
// happens to be aligned would hide it.
TEST(Structures, OfInactiveLanesAreAligned) {
    Compiled program("kernel void k(global const double4* in, global double4* out, global const int* at, int n) {\n"
                     "  int i = get_global_id(0); if (at[i] < n) { double4 v = in[at[i]]; out[i] = v * v.wzyx + v; } }",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    ASSERT_NE(program.optimised().find("load <4 x double>"), std::string::npos) << program.optimised();
    const std::regex zeros(R"(%unread\S* = alloca \[32 x i64\], align (\d+))");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(program.optimised(), found, zeros)) << program.optimised();
    EXPECT_GE(std::stoi(found[1]), 32);
}

// A structure is aligned at the place of the one active lane of several, and not where the first lane would access memory.
template <class T>
void expect_alignment_of_active_lanes(const std::string& type) {
    constexpr size_t items = 96, members = 64 / sizeof(T);
    Compiled program(
        "typedef struct __attribute__((aligned(64))) { " + type + " x, y; } S;\nkernel void k(global const " + type +
        "* in, global " + type + "* out, int first) {\n  int i = get_global_id(0);\n  if (i % " + number(members) +
        " == first) ((global S*)(out + (i - first)))->x = " + "((global const S*)(in + (i - first)))->x + 1;\n}");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_GT(program.result().lanes.loops, 0U) << program.result().lanes.reason;
    using Side = Fenced<T>::Side;
    Fenced<T> in(items, Side::after), out(items, Side::after);
    std::vector<T> expected = out.values();
    constexpr int first = static_cast<int>(members) - 3;
    for (size_t i = 0; i < items; i += members)
        expected[i] = in[i] + T{1};
    program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(first));
    EXPECT_EQ(out.values(), expected);
}

TEST(Steps, ActiveLanesAloneAreAligned) {
    expect_alignment_of_active_lanes<float>("float");
    expect_alignment_of_active_lanes<double>("double");
    expect_alignment_of_active_lanes<int32_t>("int");
    expect_alignment_of_active_lanes<int64_t>("long");
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
