// Common and geometric functions (OpenCL C 6.15.4 and 6.15.5), scalars and vectors of every width, also the forms
// that mix vectors with scalars, against references in a wider type.
#include "buffer.h"
#include "kernel_runner.h"
#include "opencl_types.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace polder::math {
namespace {

using test::KernelRunner;
using Wide = long double;

constexpr size_t count = 480;  // a multiple of every width

template <class T>
Buffer<T> numbers(uint64_t seed) {
    std::mt19937_64 random{seed};
    std::uniform_real_distribution<double> distribution(-4, 4);
    Buffer<T> values(count);
    for (size_t i = 0; i < count; ++i)
        values[i] = static_cast<T>(i % 7 == 0 ? std::rint(distribution(random)) : distribution(random));
    return values;
}

// `result` in units of `exact`'s last place.
template <class T>
double ulps(T result, Wide exact) {
    const int exponent = exact == 0 ? std::numeric_limits<T>::min_exponent : std::ilogb(exact) + 1;
    const Wide unit =
        std::ldexp(Wide{1}, std::max(exponent, std::numeric_limits<T>::min_exponent) - std::numeric_limits<T>::digits);
    return static_cast<double>(std::fabs(result - exact) / unit);
}

Wide clamped(Wide x, Wide low, Wide high) { return std::min(std::max(x, low), high); }

Wide smooth(Wide low, Wide high, Wide x) {
    const Wide t = clamped((x - low) / (high - low), 0, 1);
    return t * t * (3 - 2 * t);
}

struct Form {
    const char* name;
    const char* call;         // A, B and C are the arguments; a, b and c for scalars from their first elements
    Wide (*reference)(Wide a, Wide b, Wide c);
    double ulp;
    double absolute;          // a bound beside the relative one, for differences of products
    bool is_for_vectors = false;
};

// Bounds of 7.4: clamp, max, min, sign, step are exact; degrees and radians 2 ulp; mix and smoothstep have
// none: what two or three roundings can do.
const Form forms[] = {
    {"clamp", "clamp(A, min(B, C), max(B, C))",
     [](Wide a, Wide b, Wide c) { return clamped(a, std::min(b, c), std::max(b, c)); }, 0, 0},
    {"clamp_scalar", "clamp(A, s(-1.5), s(2.25))", [](Wide a, Wide, Wide) { return clamped(a, -1.5L, 2.25L); }, 0, 0,
     true},
    {"degrees", "degrees(A)", [](Wide a, Wide, Wide) { return a * 180 / M_PIl; }, 2, 0},
    {"radians", "radians(A)", [](Wide a, Wide, Wide) { return a * M_PIl / 180; }, 2, 0},
    {"max", "max(A, B)", [](Wide a, Wide b, Wide) { return std::max(a, b); }, 0, 0},
    {"max_scalar", "max(A, s(0.5))", [](Wide a, Wide, Wide) { return std::max(a, 0.5L); }, 0, 0, true},
    {"min", "min(A, B)", [](Wide a, Wide b, Wide) { return std::min(a, b); }, 0, 0},
    {"min_scalar", "min(A, s(0.5))", [](Wide a, Wide, Wide) { return std::min(a, 0.5L); }, 0, 0, true},
    {"fmax_scalar", "fmax(A, s(0.5))", [](Wide a, Wide, Wide) { return std::max(a, 0.5L); }, 0, 0, true},
    {"fmin_scalar", "fmin(A, s(0.5))", [](Wide a, Wide, Wide) { return std::min(a, 0.5L); }, 0, 0, true},
    {"mix", "mix(A, B, C)", [](Wide a, Wide b, Wide c) { return a + (b - a) * c; }, 1, 64},
    {"mix_scalar", "mix(A, B, s(0.25))", [](Wide a, Wide b, Wide) { return a + (b - a) * 0.25L; }, 1, 64, true},
    {"sign", "sign(A)", [](Wide a, Wide, Wide) { return Wide(a > 0) - Wide(a < 0); }, 0, 0},
    {"smoothstep", "smoothstep(-fabs(B) - s(1), fabs(C) + s(1), A)",
     [](Wide a, Wide b, Wide c) { return smooth(-std::fabs(b) - 1, std::fabs(c) + 1, a); }, 4, 8},
    {"smoothstep_scalar", "smoothstep(s(-1), s(2), A)", [](Wide a, Wide, Wide) { return smooth(-1, 2, a); }, 4, 8,
     true},
    {"step", "step(A, B)", [](Wide a, Wide b, Wide) { return Wide(b < a ? 0 : 1); }, 0, 0},
    {"step_scalar", "step(s(1), B)", [](Wide, Wide b, Wide) { return Wide(b < 1 ? 0 : 1); }, 0, 0, true},
    {"ldexp_scalar", "ldexp(A, 3)", [](Wide a, Wide, Wide) { return 8 * a; }, 0, 0, true},
};

std::string kernel_of(const Form& form, const std::string& type, int width) {
    const std::string vector = type + width_suffix(width);
    return "#define s(x) ((" + type + ")x)\n" + kernel_for(width) + "k_" + form.name + "(global const " + type +
           "* pa, global const " + type + "* pb, global const " + type + "* pc, global " + type +
           "* out) {\n    size_t i = get_global_id(0);\n    " + vector + " A = " + load("pa", width) +
           ", B = " + load("pb", width) + ", C = " + load("pc", width) + ";\n    " + store(form.call, "out", width) +
           "\n}\n#undef s\n";
}

template <class T>
void expect_forms(const std::string& type, int width) {
    std::string source;
    for (const Form& form : forms)
        source += kernel_of(form, type, width);
    KernelRunner runner{source};
    Buffer<T> a = numbers<T>(1), b = numbers<T>(2), c = numbers<T>(3);
    for (const Form& form : forms) {
        Buffer<T> out(count);
        void* const pointers[] = {a.data(), b.data(), c.data(), out.data()};
        runner.run(std::string{"k_"} + form.name, pointers, count / static_cast<size_t>(width));
        for (size_t i = 0; i < count; ++i) {
            const Wide exact = form.reference(a[i], b[i], c[i]);
            const Wide slack = form.absolute * std::numeric_limits<T>::epsilon();
            ASSERT_TRUE(ulps(out[i], exact) <= form.ulp || std::fabs(out[i] - exact) <= slack)
                << form.name << " of " << type << width << ": " << a[i] << ", " << b[i] << ", " << c[i] << " gives "
                << out[i] << ", exactly " << static_cast<double>(exact);
        }
    }
}

TEST(CommonFunctions, EveryForm_StaysWithinItsBound) {
    for (const int width : all_widths)
        for_floating_types([&](auto zero, const std::string& type) { expect_forms<decltype(zero)>(type, width); });
}

// The specification leaves the result open. That of a comparison takes one instruction; that of fmin and fmax, three.
TEST(CommonFunctions, MinAndMaxWithNaN_ReturnTheFirst) {
    for (const auto& [type, width] : {std::pair{"float", 1}, {"float", 3}, {"double", 1}, {"double", 4}}) {
        const std::string vector = type + width_suffix(width);
        KernelRunner runner{"kernel void k(global const float* a, global float* out) {\n    " + vector +
                            " x = a[0], y = a[1], low = min(x, y), high = max(x, y);\n    " + type +
                            " scalar = a[1];\n    low += min(x, scalar); high += max(x, scalar);\n    out[0] = low" +
                            (width > 1 ? ".z" : "") + "; out[1] = high" + (width > 1 ? ".z" : "") + "; }"};
        constexpr float nan = std::numeric_limits<float>::quiet_NaN();
        Buffer<float> a = {nan, 1}, out = {9, 9};
        void* const pointers[] = {a.data(), out.data()};
        runner.run("k", pointers, 1);
        EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1])) << vector << " " << out[0] << " " << out[1];
        a = {1, nan};
        void* const others[] = {a.data(), out.data()};
        runner.run("k", others, 1);
        EXPECT_EQ(out[0], 2) << vector;
        EXPECT_EQ(out[1], 2) << vector;
    }
}

TEST(CommonFunctions, SignOfZeroAndNaN_AreKept) {
    for_floating_types([](auto zero, const std::string& type) {
        using T = decltype(zero);
        KernelRunner runner{"kernel void k(global const " + type + "* a, global " + type +
                            "* out) { size_t i = get_global_id(0); out[i] = sign(a[i]); }"};
        Buffer<T> a = {0, -T(0), std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), -1};
        Buffer<T> out(a.size(), 9);
        void* const pointers[] = {a.data(), out.data()};
        runner.run("k", pointers, a.size());
        EXPECT_TRUE(out[0] == 0 && !std::signbit(out[0]));
        EXPECT_TRUE(out[1] == 0 && std::signbit(out[1]));
        EXPECT_EQ(out[2], 0);
        EXPECT_EQ(out[3], 1);
        EXPECT_EQ(out[4], -1);
    });
}

// Geometric functions take vectors of up to four. Their bounds grow with the width: 2.5 + 2 n ulp for length and
// its like, of halves 0.25 + 0.5 n, n + n - 1 roundings of the sum of the products' sizes for dot.
template <class T>
class Geometry {
public:
    Geometry(const std::string& type, int width) : width_(width), runner_(source(type, width)) {}

    void expect_all() {
        Buffer<T> a = numbers<T>(11), b = numbers<T>(12);
        Buffer<T> numbers_out(count * 6), vectors_out(count * 2);
        void* const pointers[] = {a.data(), b.data(), numbers_out.data(), vectors_out.data()};
        const auto w = static_cast<size_t>(width_);
        runner_.run("k", pointers, count / w);
        for (size_t i = 0; i < count / w; ++i)
            check(&a[i * w], &b[i * w], &numbers_out[6 * i], &vectors_out[2 * i * w]);
    }

private:
    static std::string source(const std::string& type, int width) {
        const bool is_float = type == "float";
        const std::string fast = is_float ? "fast_" : "";
        return "kernel void k(global const " + type + "* a, global const " + type + "* b, global " + type +
               "* n, global " + type + "* v) {\n    size_t i = get_global_id(0);\n    " + type + width_suffix(width) +
               " x = " + load("a", width) + ", y = " + load("b", width) +
               ";\n    n[6 * i] = dot(x, y); n[6 * i + 1] = length(x); n[6 * i + 2] = distance(x, y);\n    n[6 * i + "
               "3] = " +
               fast + "length(x); n[6 * i + 4] = " + fast + "distance(x, y);\n    i *= 2; " +
               store("normalize(x)", "v", width) + " i += 1; " + store(fast + "normalize(x)", "v", width) + "\n}\n";
    }

    void check(const T* a, const T* b, const T* n, const T* v) const {
        Wide dot = 0, sizes = 0, square = 0, apart = 0;
        for (int k = 0; k < width_; ++k) {
            dot += Wide{a[k]} * b[k];
            sizes += std::fabs(Wide{a[k]} * b[k]);
            square += Wide{a[k]} * a[k];
            apart += (Wide{a[k]} - b[k]) * (Wide{a[k]} - b[k]);
        }
        const double bound = sizeof(T) == 2 ? 0.25 + 0.5 * width_ : 2.5 + 2 * width_;
        const double fast_bound = 8192 + width_;
        EXPECT_LE(std::fabs(n[0] - dot), 2 * width_ * sizes * std::numeric_limits<T>::epsilon() + 1e-40L) << "dot";
        EXPECT_LE(ulps(n[1], std::sqrt(square)), bound) << "length";
        EXPECT_LE(ulps(n[2], std::sqrt(apart)), bound) << "distance";
        EXPECT_LE(ulps(n[3], std::sqrt(square)), fast_bound) << "fast_length";
        EXPECT_LE(ulps(n[4], std::sqrt(apart)), fast_bound) << "fast_distance";
        for (int k = 0; k < width_; ++k) {
            const Wide exact = square == 0 ? Wide{a[k]} : a[k] / std::sqrt(square);
            EXPECT_LE(ulps(v[k], exact), bound) << "normalize, component " << k;
            EXPECT_LE(ulps(v[width_ + k], exact), fast_bound) << "fast_normalize, component " << k;
        }
    }

    const int width_;
    KernelRunner runner_;
};

TEST(GeometricFunctions, LengthsAndProducts_StayWithinTheirBounds) {
    for (const int width : {1, 2, 3, 4})
        for_floating_types(
            [&](auto zero, const std::string& type) { Geometry<decltype(zero)>{type, width}.expect_all(); });
}

TEST(GeometricFunctions, EnormousAndTinyVectors_NeitherOverflowNorVanish) {
    for_floating_types([](auto zero, const std::string& type) {
        using T = decltype(zero);
        KernelRunner runner{
            "kernel void k(global const " + type + "* a, global " + type + "* n, global " + type +
            "* v) { size_t i = get_global_id(0); n[i] = length(vload3(i, a)); vstore3(normalize(vload3(i, "
            "a)), i, v); }"};
        const T large = std::numeric_limits<T>::max() / 4, small = std::numeric_limits<T>::min() * 2;
        Buffer<T> a = {large, -large, large, small, small, -small, 0, 0, 0};
        Buffer<T> n(3), v(9, 9);
        void* const pointers[] = {a.data(), n.data(), v.data()};
        runner.run("k", pointers, 3);
        const Wide root = std::sqrt(Wide{3});
        EXPECT_LE(ulps(n[0], large * root), 8.5);
        EXPECT_LE(ulps(n[1], small * root), 8.5);
        EXPECT_EQ(n[2], 0);
        for (size_t k = 0; k < 6; ++k)
            EXPECT_LE(ulps(v[k], (a[k] < 0 ? -1 : 1) / root), 8.5) << type << " " << k;
        EXPECT_EQ(v[6], 0);
    });
}

// Usual, enormous, tiny and infinite vectors and zeros side by side, as lanes have them.
template <class T>
void expect_all_sizes(const std::string& type) {
    constexpr T infinite = std::numeric_limits<T>::infinity(), large = std::numeric_limits<T>::max() / 4,
                small = std::numeric_limits<T>::denorm_min();
    const T sizes[] = {1, large, 8 * small, 0, infinite, 3, small, infinite, 5, 7};
    constexpr size_t items = 150;
    for (const int width : {2, 3, 4}) {
        const auto w = static_cast<size_t>(width);
        KernelRunner runner{"kernel void k(global const " + type + "* a, global " + type + "* n, global " + type +
                            "* v) { size_t i = get_global_id(0); n[i] = length(" + load("a", width) + "); " +
                            store("normalize(" + load("a", width) + ")", "v", width) + " }"};
        Buffer<T> a(items * w), n(items, 9), v(items * w, 9);
        for (size_t i = 0; i < items; ++i)  // the first two parts have the size; the second one is negative
            for (size_t k = 0; k < 2; ++k)
                a[i * w + k] = (k == 0 ? 1 : -1) * sizes[i % std::size(sizes)];
        void* const pointers[] = {a.data(), n.data(), v.data()};
        runner.run("k", pointers, items);
        for (size_t i = 0; i < items; ++i) {
            const T size = sizes[i % std::size(sizes)];
            if (std::isinf(size))
                EXPECT_EQ(n[i], infinite) << type << width;
            else
                EXPECT_LE(ulps(n[i], size * std::sqrt(Wide{2})), 8.5) << type << width << " " << size;
            for (size_t k = 0; k < w; ++k) {
                const Wide part = size == 0 || k > 1 ? 0 : (k == 0 ? 1 : -1) / std::sqrt(Wide{2});
                EXPECT_LE(ulps(v[i * w + k], part), 8.5) << type << width << " " << size << " " << k;
            }
        }
    }
}

TEST(GeometricFunctions, VectorsOfAllSizes_AreRightBesideEachOther) {
    expect_all_sizes<float>("float");
    expect_all_sizes<double>("double");
}

TEST(GeometricFunctions, CrossProducts_ArePerpendicularToBoth) {
    for_floating_types([](auto zero, const std::string& type) {
        using T = decltype(zero);
        for (const int width : {3, 4}) {
            KernelRunner runner{"kernel void k(global const " + type + "* a, global const " + type + "* b, global " +
                                type + "* out) { size_t i = get_global_id(0); " +
                                store("cross(" + load("a", width) + ", " + load("b", width) + ")", "out", width) +
                                " }"};
            Buffer<T> a = numbers<T>(21), b = numbers<T>(22), out(count, 9);
            void* const pointers[] = {a.data(), b.data(), out.data()};
            const auto w = static_cast<size_t>(width);
            runner.run("k", pointers, count / w);
            for (size_t i = 0; i < count; i += w) {
                for (size_t k = 0; k < 3; ++k) {
                    const size_t y = i + (k + 1) % 3, z = i + (k + 2) % 3;
                    const Wide first = Wide{a[y]} * b[z], second = Wide{a[z]} * b[y];
                    EXPECT_LE(std::fabs(out[i + k] - (first - second)),
                              2 * (std::fabs(first) + std::fabs(second)) * std::numeric_limits<T>::epsilon());
                }
                if (width == 4) {
                    EXPECT_EQ(out[i + 3], 0);
                }
            }
        }
    });
}

} // namespace
} // namespace polder::math
