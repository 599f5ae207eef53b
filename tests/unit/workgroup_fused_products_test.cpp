// fma on processors without an instruction for it (targets/host/instructions/fused_products.h).
#include "workgroup_harness.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* processor_without_fma = "x86-64-v2";

std::string source_of(const std::string& type) {
    return "kernel void k(global const " + type + "* a, global const " + type + "* b, global const " + type +
           "* c, global " + type + "* out) { size_t i = get_global_id(0); out[i] = fma(a[i], b[i], c[i]); }";
}

template <class T>
struct Bits;
template <>
struct Bits<float> {
    using Representation = uint32_t;
    static constexpr unsigned mantissa = 23, exponent_max = 255;
};
template <>
struct Bits<double> {
    using Representation = uint64_t;
    static constexpr unsigned mantissa = 52, exponent_max = 2047;
};

// Half of the numbers have few bits, so that there are ties, and products that are exact.
template <class T>
class Numbers {
public:
    using Representation = Bits<T>::Representation;

    T next(unsigned exponent_low, unsigned exponent_high) {
        const auto exponent = std::uniform_int_distribution<Representation>(exponent_low, exponent_high)(generator_);
        Representation mantissa =
            std::uniform_int_distribution<Representation>(0, (Representation{1} << Bits<T>::mantissa) - 1)(generator_);
        if (generator_() % 2 == 0)
            mantissa = mantissa >> (Bits<T>::mantissa - 3) << (Bits<T>::mantissa - 3);
        const Representation sign = generator_() % 2;
        return std::bit_cast<T>(
            static_cast<Representation>(sign << (sizeof(T) * 8 - 1) | exponent << Bits<T>::mantissa | mantissa));
    }

    T anything() { return next(0, Bits<T>::exponent_max); }

    T special() {
        using Limits = std::numeric_limits<T>;
        const T values[] = {
            0, Limits::infinity(),      Limits::quiet_NaN(), Limits::max(), Limits::min(), Limits::denorm_min(),
            1, T(1) + Limits::epsilon()};
        const T value = values[generator_() % std::size(values)];
        return generator_() % 2 == 0 ? value : -value;
    }

private:
    std::mt19937_64 generator_{7};
};

template <class T>
struct Operands {
    std::vector<T> a, b, c;
    void add(T x, T y, T z) { a.push_back(x), b.push_back(y), c.push_back(z); }
};

template <class T>
Operands<T> operands() {
    constexpr unsigned middle = Bits<T>::exponent_max / 2;
    Numbers<T> numbers;
    Operands<T> made;
    for (int i = 0; i < 100000; ++i) {
        const T a = numbers.next(middle - 4, middle + 4), b = numbers.next(middle - 4, middle + 4);
        made.add(a, b, numbers.next(middle - 60, middle + 60));
        made.add(a, b, -(a * b));
        made.add(a, b, std::nextafter(-(a * b), T(0)));
    }
    for (int i = 0; i < 100000; ++i) {
        made.add(numbers.anything(), numbers.anything(), numbers.anything());
        // The product near the smallest numbers, where bits of its parts are lost.
        const T a = numbers.anything(), small = std::numeric_limits<T>::min() / a;
        made.add(a, small * numbers.next(middle - 2, middle + 2),
                 std::numeric_limits<T>::denorm_min() * numbers.next(middle, middle + 6));
        made.add(numbers.special(), numbers.special(), numbers.special());
        made.add(numbers.special(), numbers.anything(), numbers.special());
    }
    return made;
}

template <class T>
bool is_same(T x, T y) {
    using Representation = Bits<T>::Representation;
    return (std::isnan(x) && std::isnan(y)) || std::bit_cast<Representation>(x) == std::bit_cast<Representation>(y);
}

template <class T>
void expect_exact(const std::string& type, Lanes lanes) {
    Compiled program(source_of(type), processor_without_fma);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, lanes), "");
    EXPECT_EQ(program.result().lanes.loops, lanes == Lanes::none ? 0U : 1U);
    // What remains is in a function for rare operands.
    EXPECT_FALSE(has(program, "@llvm.fma")) << program.optimised();
    const Operands<T> given = operands<T>();
    const uint64_t items = given.a.size() / 64 * 64;
    std::vector<T> out(given.a.size());
    program.run({.global = {items, 1, 1}, .local = {64, 1, 1}},
                Arguments().add(given.a.data()).add(given.b.data()).add(given.c.data()).add(out.data()));
    int shown = 0;
    for (size_t i = 0; i < items && shown < 10; ++i) {
        const T expected = std::fma(given.a[i], given.b[i], given.c[i]);
        EXPECT_TRUE(is_same(out[i], expected)) << given.a[i] << " * " << given.b[i] << " + " << given.c[i] << " gives "
                                               << out[i] << ", exactly " << expected << std::hexfloat;
        shown += is_same(out[i], expected) ? 0 : 1;
    }
}

TEST(FusedProducts, OfFloats_AreRoundedOnce) {
    expect_exact<float>("float", Lanes::wherever_possible);
    expect_exact<float>("float", Lanes::none);
}

TEST(FusedProducts, OfDoubles_AreRoundedOnce) {
    expect_exact<double>("double", Lanes::wherever_possible);
    expect_exact<double>("double", Lanes::none);
}

TEST(FusedProducts, OfProcessorsWithTheInstruction_StayAsTheyAre) {
    Compiled program(source_of("float"), "haswell");
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
    EXPECT_TRUE(has(program, "call <8 x float> @llvm.fma")) << program.optimised();
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
