// Elements of the kernel's own vectors at places that it computes, such as those of a shuffle, in lanes.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr uint64_t odd_items = 71;  // the last lanes are not full

std::string chosen(const std::string& type, const std::string& places, unsigned elements) {
    const std::string vector = type + std::to_string(elements), indices = places + std::to_string(elements);
    std::string text = "typedef " + vector + " numbers __attribute__((aligned(sizeof(" + type + "))));\ntypedef " +
                       indices + " places __attribute__((aligned(sizeof(" + places + "))));\n" +
                       "kernel void k(global const numbers* in, global const places* at, global numbers* out) {\n" +
                       "    size_t i = get_global_id(0);\n    " + vector + " x = in[i];\n    " + indices +
                       " p = at[i] & (" + places + ")" + std::to_string(elements - 1) + ";\n    out[i] = (" + vector +
                       ")(";
    constexpr const char* digits = "0123456789abcdef";
    for (unsigned i = 0; i < elements; ++i)
        text += std::string(i == 0 ? "" : ", ") + "x[p.s" + digits[i] + "]";
    return text + ");\n}";
}

template <class T, class Place>
void check(const std::string& type, const std::string& places) {
    for (const unsigned elements : {2U, 4U, 8U, 16U})
        for (const char* const processor : processors)
            for (const Lanes lanes : {Lanes::wherever_possible, Lanes::none}) {
                if (!runs_here(processor))
                    continue;
                Compiled program(chosen(type, places, elements), processor);
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
                std::vector<T> in(odd_items * elements), out(in.size());
                std::vector<Place> at(in.size());
                for (size_t i = 0; i < in.size(); ++i) {
                    in[i] = static_cast<T>(i * 7 + 3);
                    at[i] = static_cast<Place>(i * 2654435761U >> 7);
                }
                program.run({.global = {odd_items, 1, 1}, .local = {16, 1, 1}},
                            Arguments().add(in.data()).add(at.data()).add(out.data()));
                for (size_t i = 0; i < out.size(); ++i)
                    ASSERT_EQ(out[i], in[i / elements * elements + at[i] % elements])
                        << type << elements << " on " << processor << ": " << i;
            }
}

TEST(ChosenElements, AreThoseAtTheirPlaces_Bytes) { check<uint8_t, uint8_t>("uchar", "uchar"); }
TEST(ChosenElements, AreThoseAtTheirPlaces_Words) { check<float, int32_t>("float", "int"); }
TEST(ChosenElements, AreThoseAtTheirPlaces_Longs) { check<int64_t, uint64_t>("long", "ulong"); }

// Three choices for each of four elements, by two bits of its place.
TEST(ChosenElements, AreChosenByBits) {
    Compiled program(chosen("float", "int", 4), processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_EQ(count(program, " = icmp eq <16 x i32>") + count(program, " = icmp ne <16 x i32>"), 8U)
        << program.optimised();
    EXPECT_EQ(count(program, " = select <16 x i1>"), 12U);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
