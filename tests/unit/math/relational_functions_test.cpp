// Relational functions (OpenCL C 6.15.6): comparisons and classes of floating-point numbers, any, all, bitselect
// and select, scalars and vectors of every width, against the processor's own comparisons.
#include "buffer.h"
#include "kernel_runner.h"
#include "opencl_types.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace polder::math {
namespace {

using test::KernelRunner;

template <class T>
Buffer<T> interesting() {
    using Limits = std::numeric_limits<T>;
    return {0,
            -T(0),
            1,
            -1,
            T(1.5),
            T(-2.5),
            Limits::denorm_min(),
            -Limits::denorm_min(),
            Limits::min(),
            Limits::max(),
            Limits::lowest(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN(),
            -Limits::quiet_NaN(),
            next_number(T(1), T(2))};
}

// Every pair of interesting numbers; 256 of them and some more, so that 48 divides the count.
template <class T>
void fill_pairs(Buffer<T>& a, Buffer<T>& b) {
    const Buffer<T> values = interesting<T>();
    for (size_t i = 0; i < 288; ++i) {
        a.push_back(values[i / values.size() % values.size()]);
        b.push_back(values[i % values.size()]);
    }
}

template <class T>
struct Relation {
    const char* name;
    bool (*holds)(T, T);
};

template <class T>
const Relation<T> relations[] = {
    {"isequal", [](T a, T b) { return a == b; }},
    {"isnotequal", [](T a, T b) { return a != b; }},
    {"isgreater", [](T a, T b) { return a > b; }},
    {"isgreaterequal", [](T a, T b) { return a >= b; }},
    {"isless", [](T a, T b) { return a < b; }},
    {"islessequal", [](T a, T b) { return a <= b; }},
    {"islessgreater", [](T a, T b) { return a < b || a > b; }},
    {"isordered", [](T a, T b) { return !std::isunordered(a, b); }},
    {"isunordered", [](T a, T b) { return std::isunordered(a, b); }},
};

template <class T>
const Relation<T> classes[] = {
    {"isfinite", [](T a, T) { return std::isfinite(a); }},
    {"isinf", [](T a, T) { return std::isinf(a); }},
    {"isnan", [](T a, T) { return std::isnan(a); }},
    {"isnormal", [](T a, T) { return std::isfinite(a) && std::fabs(a) >= std::numeric_limits<T>::min(); }},
    {"signbit", [](T a, T) { return std::signbit(a); }},
};

// A scalar comparison gives 1, a vector's element -1, of the integer type of the element's size.
template <class T, class Truth>
void expect_truths(const std::string& type, int width) {
    const std::string w = width_suffix(width);
    const std::string truth = width == 1 ? "int" : signed_name(sizeof(T));
    std::string source;
    const auto add = [&](const char* name, const std::string& arguments) {
        source += kernel_for(width) + "k_" + std::string(name) + "(global const " + type + "* a, global const " + type +
                  "* b, global " + truth + "* out) {\n    size_t i = get_global_id(0);\n    " + truth + w +
                  " r = " + name + "(" + arguments + ");\n    " + store("r", "out", width) + "\n}\n";
    };
    for (const Relation<T>& relation : relations<T>)
        add(relation.name, load("a", width) + ", " + load("b", width));
    for (const Relation<T>& one : classes<T>)
        add(one.name, load("a", width));
    KernelRunner runner{source};
    Buffer<T> a, b;
    fill_pairs(a, b);
    const auto check = [&](const Relation<T>& relation) {
        Buffer<Truth> out(a.size(), 77);
        void* const pointers[] = {a.data(), b.data(), out.data()};
        runner.run(std::string{"k_"} + relation.name, pointers, a.size() / static_cast<size_t>(width));
        for (size_t i = 0; i < a.size(); ++i) {
            const Truth yes = width == 1 ? 1 : -1;
            ASSERT_EQ(out[i], relation.holds(a[i], b[i]) ? yes : Truth{0})
                << relation.name << " of " << type << w << " " << a[i] << ", " << b[i];
        }
    };
    for (const Relation<T>& relation : relations<T>)
        check(relation);
    for (const Relation<T>& one : classes<T>)
        check(one);
}

TEST(Relational, ComparisonsAndClasses_AreThoseOfTheProcessor) {
    for (const int width : all_widths)
        for_floating_types([&](auto zero, const std::string& type) {
            using T = decltype(zero);
            if (width == 1)
                expect_truths<T, int32_t>(type, width);
            else
                expect_truths<T, SignedLike<T>>(type, width);
        });
}

TEST(Relational, AnyAndAll_LookAtTheHighestBits) {
    for_integer_types([](auto zero, const std::string& type) {
        using T = decltype(zero);
        if (!std::is_signed_v<T>)
            return;
        for (const int width : all_widths) {
            KernelRunner runner{kernel_for(width) + "k(global const " + type + "* a, global int* out) {\n" +
                                "    size_t i = get_global_id(0);\n    out[2 * i] = any(" + load("a", width) +
                                ");\n    out[2 * i + 1] = all(" + load("a", width) + ");\n}\n"};
            std::mt19937_64 random{7};
            Buffer<T> a(static_cast<size_t>(width) * 200);
            for (size_t i = 0; i < a.size(); ++i) {
                // Vectors of which none, few, most or all have the bit.
                const uint64_t kind = i / static_cast<size_t>(width) % 4, one_in_8 = random() % 8 == 0 ? 1 : 0;
                const bool has = kind == 0 ? false : kind == 1 ? one_in_8 : kind == 2 ? !one_in_8 : true;
                a[i] = static_cast<T>((random() & std::numeric_limits<T>::max()) |
                                      (has ? uint64_t{1} << (8 * sizeof(T) - 1) : 0));
            }
            Buffer<int32_t> out(400, 5);
            void* const pointers[] = {a.data(), out.data()};
            runner.run("k", pointers, 200);
            for (size_t i = 0; i < 200; ++i) {
                int negative = 0;
                for (int k = 0; k < width; ++k)
                    negative += a[i * static_cast<size_t>(width) + static_cast<size_t>(k)] < 0 ? 1 : 0;
                ASSERT_EQ(out[2 * i], negative > 0 ? 1 : 0) << "any of " << type << width;
                ASSERT_EQ(out[2 * i + 1], negative == width ? 1 : 0) << "all of " << type << width;
            }
        }
    });
}

template <class T>
Buffer<T> random_bits(size_t count, uint64_t seed) {
    std::mt19937_64 random{seed};
    Buffer<T> values(count);
    for (T& value : values) {
        const uint64_t bits = random();
        std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    }
    return values;
}

template <class T>
UnsignedLike<T> bits_of(T value) {
    UnsignedLike<T> bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// bitselect(a, b, c) and select(a, b, c) with signed and unsigned c.
template <class T>
void expect_selections(const std::string& type, int width) {
    const std::string w = width_suffix(width), integer = signed_name(sizeof(T));
    const auto kernel = [&](const std::string& name, const std::string& c_type, const std::string& call) {
        return kernel_for(width) + name + "(global const " + type + "* a, global const " + type + "* b, global const " +
               c_type + "* c, global " + type + "* out) {\n    size_t i = get_global_id(0);\n    " +
               store(call + "(" + load("a", width) + ", " + load("b", width) + ", " + load("c", width) + ")", "out",
                     width) +
               "\n}\n";
    };
    KernelRunner runner{kernel("bits", type, "bitselect") + kernel("by_signed", integer, "select") +
                        kernel("by_unsigned", "u" + integer, "select")};
    constexpr size_t count = 240;
    Buffer<T> a = random_bits<T>(count, 1), b = random_bits<T>(count, 2), c = random_bits<T>(count, 3);
    for (size_t i = 0; i < count; i += 5)
        std::memset(static_cast<void*>(&c[i]), i % 2 ? 0 : 1, sizeof(T));
    for (const std::string name : {"bits", "by_signed", "by_unsigned"}) {
        Buffer<T> out(count);
        void* const pointers[] = {a.data(), b.data(), c.data(), out.data()};
        runner.run(name, pointers, count / static_cast<size_t>(width));
        for (size_t i = 0; i < count; ++i) {
            const auto mask = bits_of(c[i]);
            const bool chooses_b = width == 1 ? mask != 0 : mask >> (8 * sizeof(T) - 1) != 0;
            const auto expected = name == "bits"
                                      ? static_cast<UnsignedLike<T>>((bits_of(a[i]) & ~mask) | (bits_of(b[i]) & mask))
                                  : chooses_b ? bits_of(b[i])
                                              : bits_of(a[i]);
            ASSERT_EQ(bits_of(out[i]), expected) << name << " of " << type << w << ", element " << i;
        }
    }
}

TEST(Relational, Selections_TakeTheBitsTheyShould) {
    for (const int width : all_widths)
        for_all_types([&](auto zero, const std::string& type) { expect_selections<decltype(zero)>(type, width); });
}

} // namespace
} // namespace polder::math
