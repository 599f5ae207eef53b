// Integer functions (OpenCL C 6.15.3), bit operations and dot products, against plain C++ over special and random
// arguments, scalar and in vectors of four.
#include "buffer.h"
#include "kernel_runner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace polder {
namespace {

using test::KernelRunner;

template <class T>
struct Name;
template <>
struct Name<int8_t> {
    static constexpr const char* text = "char";
};
template <>
struct Name<uint8_t> {
    static constexpr const char* text = "uchar";
};
template <>
struct Name<int16_t> {
    static constexpr const char* text = "short";
};
template <>
struct Name<uint16_t> {
    static constexpr const char* text = "ushort";
};
template <>
struct Name<int32_t> {
    static constexpr const char* text = "int";
};
template <>
struct Name<uint32_t> {
    static constexpr const char* text = "uint";
};
template <>
struct Name<int64_t> {
    static constexpr const char* text = "long";
};
template <>
struct Name<uint64_t> {
    static constexpr const char* text = "ulong";
};

using Wide = __int128;

template <class T>
T saturated(Wide value) {
    return static_cast<T>(std::clamp<Wide>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

// Arguments of T: a, b, c and small counts m, n with m + n <= width.
template <class T>
struct Inputs {
    static constexpr unsigned width = 8 * sizeof(T);
    Buffer<T> a, b, c;
    Buffer<uint32_t> m, n;

    Inputs() {
        Buffer<T> special = {0,
                             1,
                             2,
                             3,
                             7,
                             85,
                             std::numeric_limits<T>::max(),
                             std::numeric_limits<T>::min(),
                             static_cast<T>(-1),
                             static_cast<T>(-2),
                             static_cast<T>(std::numeric_limits<T>::max() / 2),
                             static_cast<T>(std::numeric_limits<T>::min() + 1)};
        for (const T x : special)
            for (const T y : special)
                add(x, y, special[(a.size() * 7) % special.size()]);
        while (a.size() < 1024)
            add(shifted(), shifted(), shifted());
    }

private:
    T shifted() { return static_cast<T>(static_cast<T>(random_()) >> (random_() % width)); }
    void add(T x, T y, T z) {
        a.push_back(x);
        b.push_back(y);
        c.push_back(z);
        m.push_back(static_cast<uint32_t>(random_() % (width + 1)));
        n.push_back(static_cast<uint32_t>(random_() % (width - m.back() + 1)));
    }
    std::mt19937_64 random_{31};
};

// An expression over a, b, c (T), m, n (uint), its result type, and what it should be.
template <class T, class Result>
struct Case {
    const char* expression;
    std::function<Result(T a, T b, T c, uint32_t m, uint32_t n)> expected;
};

template <class T, class Result>
void expect_all(const std::vector<Case<T, Result>>& cases, const char* result_name) {
    const std::string type = Name<T>::text;
    std::string source;
    for (const int width : {1, 4})
        for (size_t i = 0; i < cases.size(); ++i) {
            const std::string w = std::to_string(width);
            const auto load = [&](const std::string& from) {
                return width == 1 ? from + "[i]" : "vload4(i, " + from + ")";
            };
            const std::string vector = type + (width == 1 ? "" : "4");
            const std::string result = cases[i].expression;
            source +=
                "kernel void f" + std::to_string(i) + "_" + w + "(global const " + type + "* pa, global const " + type +
                "* pb, global const " + type + "* pc, global const uint* pm, global const uint* pn, global " +
                result_name + "* out) {\n    size_t i = get_global_id(0);\n    " + vector + " a = " + load("pa") +
                ", b = " + load("pb") + ", c = " + load("pc") + ";\n    uint m = pm[i * " + w + "], n = pn[i * " + w +
                "];\n    " + (width == 1 ? "out[i] = " + result : "vstore4(" + result + ", i, out)") + ";\n}\n";
        }
    KernelRunner runner{source};
    Inputs<T> inputs;
    for (const int width : {1, 4})
        for (size_t k = 0; k < cases.size(); ++k) {
            Buffer<Result> out(inputs.a.size());
            void* const pointers[] = {inputs.a.data(), inputs.b.data(), inputs.c.data(),
                                      inputs.m.data(), inputs.n.data(), out.data()};
            const auto lanes = static_cast<size_t>(width);
            runner.run("f" + std::to_string(k) + "_" + std::to_string(width), pointers, out.size() / lanes);
            for (size_t i = 0; i < out.size(); ++i) {
                const size_t first = i / lanes * lanes;
                const Result expected =
                    cases[k].expected(inputs.a[i], inputs.b[i], inputs.c[i], inputs.m[first], inputs.n[first]);
                ASSERT_EQ(+out[i], +expected)
                    << type << " " << cases[k].expression << " with a = " << +inputs.a[i] << ", b = " << +inputs.b[i]
                    << ", c = " << +inputs.c[i] << ", m = " << inputs.m[first] << ", n = " << inputs.n[first]
                    << ", vector width " << width;
            }
        }
}

template <class T>
class IntegerFunctions : public ::testing::Test {};
using IntegerTypes = ::testing::Types<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(IntegerFunctions, IntegerTypes);

TYPED_TEST(IntegerFunctions, ResultsOfTheSameType_AreThoseOfExactArithmetic) {
    using T = TypeParam;
    using U = std::make_unsigned_t<T>;
    constexpr unsigned width = 8 * sizeof(T);
    // Products of two 64-bit numbers do not fit a signed 128-bit one when unsigned.
    const auto mul_hi = [](T a, T b) {
        if constexpr (std::is_same_v<T, uint64_t>)
            return static_cast<T>((static_cast<unsigned __int128>(a) * b) >> 64);
        else
            return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> width);
    };
    const std::vector<Case<T, T>> cases = {
        {"add_sat(a, b)", [](T a, T b, T, uint32_t, uint32_t) { return saturated<T>(static_cast<Wide>(a) + b); }},
        {"sub_sat(a, b)", [](T a, T b, T, uint32_t, uint32_t) { return saturated<T>(static_cast<Wide>(a) - b); }},
        {"hadd(a, b)", [](T a, T b, T, uint32_t, uint32_t) { return static_cast<T>((static_cast<Wide>(a) + b) >> 1); }},
        {"rhadd(a, b)",
         [](T a, T b, T, uint32_t, uint32_t) { return static_cast<T>((static_cast<Wide>(a) + b + 1) >> 1); }},
        {"mul_hi(a, b)", [=](T a, T b, T, uint32_t, uint32_t) { return mul_hi(a, b); }},
        {"mad_hi(a, b, c)", [=](T a, T b, T c, uint32_t,
                                uint32_t) { return static_cast<T>(static_cast<U>(mul_hi(a, b)) + static_cast<U>(c)); }},
        {"mad_sat(a, b, c)",
         [](T a, T b, T c, uint32_t, uint32_t) {
             if constexpr (std::is_same_v<T, uint64_t>) {
                 const unsigned __int128 sum = static_cast<unsigned __int128>(a) * b + c;
                 return sum > ~uint64_t{0} ? ~uint64_t{0} : static_cast<uint64_t>(sum);
             } else {
                 return saturated<T>(static_cast<Wide>(a) * b + c);
             }
         }},
        {"rotate(a, b)",
         [](T a, T b, T, uint32_t, uint32_t) {
             return static_cast<T>(std::rotl(static_cast<U>(a), static_cast<int>(static_cast<U>(b) % width)));
         }},
        {"clz(a)", [](T a, T, T, uint32_t, uint32_t) { return static_cast<T>(std::countl_zero(static_cast<U>(a))); }},
        {"ctz(a)", [](T a, T, T, uint32_t, uint32_t) { return static_cast<T>(std::countr_zero(static_cast<U>(a))); }},
        {"popcount(a)", [](T a, T, T, uint32_t, uint32_t) { return static_cast<T>(std::popcount(static_cast<U>(a))); }},
        {"max(a, b)", [](T a, T b, T, uint32_t, uint32_t) { return std::max(a, b); }},
        {"min(a, b)", [](T a, T b, T, uint32_t, uint32_t) { return std::min(a, b); }},
        {"clamp(a, min(b, c), max(b, c))",
         [](T a, T b, T c, uint32_t, uint32_t) { return std::clamp(a, std::min(b, c), std::max(b, c)); }},
        {"bitselect(a, b, c)", [](T a, T b, T c, uint32_t, uint32_t) { return static_cast<T>((a & ~c) | (b & c)); }},
        {"bit_reverse(a)",
         [](T a, T, T, uint32_t, uint32_t) {
             U result = 0;
             for (unsigned i = 0; i < width; ++i)
                 result = static_cast<U>(result | (((static_cast<U>(a) >> i) & 1) << (width - 1 - i)));
             return static_cast<T>(result);
         }},
        {"bitfield_insert(a, b, m, n)",
         [](T a, T b, T, uint32_t m, uint32_t n) {
             const uint64_t ones = n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
             const uint64_t mask = m == 64 ? 0 : ones << m;
             return static_cast<T>((static_cast<uint64_t>(a) & ~mask) |
                                   (m == 64 ? 0 : (static_cast<uint64_t>(b) << m) & mask));
         }},
    };
    expect_all(cases, Name<T>::text);
}

TYPED_TEST(IntegerFunctions, BitfieldsExtracted_AreExtendedByTheResultsSign) {
    using T = TypeParam;
    using S = std::make_signed_t<T>;
    using U = std::make_unsigned_t<T>;
    const auto field = [](T a, uint32_t m, uint32_t n) {
        const uint64_t bits = m == 64 ? 0 : static_cast<uint64_t>(static_cast<U>(a)) >> m;
        return n == 64 ? bits : bits & ((uint64_t{1} << n) - 1);
    };
    expect_all<T, U>(
        {{"bitfield_extract_unsigned(a, m, n)",
          [=](T a, T, T, uint32_t m, uint32_t n) { return static_cast<U>(field(a, m, n)); }},
         {"abs(a)", [](T a, T, T, uint32_t,
                       uint32_t) { return static_cast<U>(a < 0 ? -static_cast<Wide>(a) : static_cast<Wide>(a)); }},
         {"abs_diff(a, b)",
          [](T a, T b, T, uint32_t, uint32_t) {
              return static_cast<U>(a > b ? static_cast<Wide>(a) - b : static_cast<Wide>(b) - a);
          }}},
        Name<U>::text);
    expect_all<T, S>({{"bitfield_extract_signed(a, m, n)",
                       [=](T a, T, T, uint32_t m, uint32_t n) {
                           if (n == 0)
                               return S{0};
                           return static_cast<S>(static_cast<int64_t>(field(a, m, n) << (64 - n)) >> (64 - n));
                       }}},
                     Name<S>::text);
}

// The integer with twice the bits.
template <class T>
using Twice =
    std::conditional_t<sizeof(T) == 1, std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>,
                       std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                                          std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

TYPED_TEST(IntegerFunctions, Upsampling_PutsOneNumberAboveTheOther) {
    using T = TypeParam;
    if constexpr (sizeof(T) < 8) {
        using To = Twice<T>;
        // abs returns an unsigned number for signed and unsigned types, as the lower half must be.
        expect_all<T, To>({{"upsample(a, abs(b))",
                            [](T a, T b, T, uint32_t, uint32_t) {
                                const Wide low = b < 0 ? -static_cast<Wide>(b) : static_cast<Wide>(b);
                                return static_cast<To>(static_cast<Wide>(a) * (Wide{1} << (8 * sizeof(T))) + low);
                            }}},
                          Name<To>::text);
    }
}

// `mul24` and `mad24` of numbers that have 24 bits; their results' low 32 bits.
template <class T>
void expect_24_bit_products() {
    const auto short_of = [](T x) { return static_cast<T>(static_cast<T>(static_cast<uint32_t>(x) << 8) >> 8); };
    expect_all<T, T>({{"mul24((a << 8) >> 8, (b << 8) >> 8)",
                       [=](T a, T b, T, uint32_t, uint32_t) {
                           return static_cast<T>(static_cast<int64_t>(short_of(a)) * short_of(b));
                       }},
                      {"mad24((a << 8) >> 8, (b << 8) >> 8, c)",
                       [=](T a, T b, T c, uint32_t, uint32_t) {
                           return static_cast<T>(static_cast<int64_t>(short_of(a)) * short_of(b) + c);
                       }}},
                     Name<T>::text);
}

TEST(ProductsOf24Bits, AreTheLowBitsOfTheExactProduct) {
    expect_24_bit_products<int32_t>();
    expect_24_bit_products<uint32_t>();
}

TEST(DotProducts, FourTimesEightBits_AccumulateAndSaturate) {
    KernelRunner runner{R"(
kernel void dots(global const uint* pa, global const uint* pb, global const int* pc, global long* out) {
    size_t i = get_global_id(0);
    uint a = pa[i], b = pb[i]; int c = pc[i]; global long* r = out + 8 * i;
    r[0] = dot(as_char4(a), as_char4(b));
    r[1] = dot(as_uchar4(a), as_uchar4(b));
    r[2] = dot_4x8packed_us_int(a, b);
    r[3] = dot_4x8packed_su_int(a, b);
    r[4] = dot_acc_sat(as_char4(a), as_char4(b), c);
    r[5] = dot_acc_sat_4x8packed_uu_uint(a, b, (uint)c);
    r[6] = dot_acc_sat_4x8packed_us_int(a, b, c);
    r[7] = dot_4x8packed_ss_int(a, b);
}
)"};
    std::mt19937_64 random{5};
    Buffer<uint32_t> a(256), b(256);
    Buffer<int32_t> c(256);
    for (size_t i = 0; i < a.size(); ++i) {
        a[i] = i == 0 ? 0x80808080 : static_cast<uint32_t>(random());
        b[i] = i == 0 ? 0x80808080 : static_cast<uint32_t>(random());
        c[i] = i % 3 == 0 ? INT32_MAX - 5 : i % 3 == 1 ? INT32_MIN + 5 : static_cast<int32_t>(random());
    }
    Buffer<int64_t> out(8 * a.size());
    void* const pointers[] = {a.data(), b.data(), c.data(), out.data()};
    runner.run("dots", pointers, a.size());
    const auto signed_byte = [](uint32_t word, unsigned at) -> int64_t {
        return static_cast<int32_t>(word << (24 - at)) >> 24;
    };
    for (size_t i = 0; i < a.size(); ++i) {
        int64_t ss = 0, uu = 0, us = 0, su = 0;
        for (unsigned k = 0; k < 32; k += 8) {
            const int64_t sa = signed_byte(a[i], k), sb = signed_byte(b[i], k);
            const int64_t ua = static_cast<uint8_t>(a[i] >> k), ub = static_cast<uint8_t>(b[i] >> k);
            ss += sa * sb;
            uu += ua * ub;
            us += ua * sb;
            su += sa * ub;
        }
        const Buffer<int64_t> expected = {ss,
                                          uu,
                                          us,
                                          su,
                                          saturated<int32_t>(static_cast<Wide>(ss) + c[i]),
                                          saturated<uint32_t>(static_cast<Wide>(uu) + static_cast<uint32_t>(c[i])),
                                          saturated<int32_t>(static_cast<Wide>(us) + c[i]),
                                          ss};
        EXPECT_EQ(Buffer<int64_t>(out.begin() + static_cast<long>(8 * i), out.begin() + static_cast<long>(8 * i + 8)),
                  expected)
            << i;
    }
}

} // namespace
} // namespace polder
