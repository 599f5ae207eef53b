#include "conversions.h"

#include "buffer.h"
#include "opencl_types.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <quadmath.h>
#include <random>

namespace polder::math {
namespace {

using Real = __float128;

constexpr std::array modes = {"", "_rte", "_rtz", "_rtp", "_rtn"};
constexpr size_t sample_count = 512;

// Calls `visit` with a value of the C++ type of an OpenCL type's name.
template <class Visit>
void with_type(const std::string& name, Visit visit) {
    if (name == "char")
        visit(int8_t{});
    else if (name == "uchar")
        visit(uint8_t{});
    else if (name == "short")
        visit(int16_t{});
    else if (name == "ushort")
        visit(uint16_t{});
    else if (name == "int")
        visit(int32_t{});
    else if (name == "uint")
        visit(uint32_t{});
    else if (name == "long")
        visit(int64_t{});
    else if (name == "ulong")
        visit(uint64_t{});
    else if (name == "half")
        visit(Half{});
    else if (name == "float")
        visit(float{});
    else
        visit(double{});
}

template <class T>
Buffer<T> samples() {
    Buffer<T> values = {0, 1, 2, 3, 100, 127, std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest()};
    std::mt19937_64 random{4711};
    if constexpr (std::is_same_v<T, Half>) {
        // All of them.
        values.clear();
        for (unsigned bits = 0; bits < 65536; ++bits)
            values.push_back(Half::of_bits(static_cast<uint16_t>(bits)));
    } else if constexpr (is_floating<T>) {
        const T special[] = {-T(0), T(0.5), T(-0.5), T(1.5), T(2.5), T(-2.5), T(0.49999997), T(126.5), T(127.5),
                             T(-128.5), T(-129), T(255.5), T(256), T(32767.5), T(65535.5), T(-32768.5), T(2147483520.0),
                             T(2147483647.5), T(2147483648.0), T(-2147483648.0), T(4294967040.0), T(4294967295.5),
                             T(4294967296.0), T(9223371487098961920.0), T(9223372036854775808.0),
                             T(-9223372036854775808.0), T(18446742974197923840.0), T(18446744073709551616.0), T(1e30),
                             T(-1e30), T(1e-30), T(-1e-30), T(1e39), T(3.4028236e38), T(1.0000001),
                             // Next to what separates two halves, and to the largest half.
                             T(65519.996), T(65520), T(-65519.996), T(2049), T(2049.0002), T(-2051), T(2.9802322e-08),
                             T(2.9802326e-08), T(6.1035156e-05), T(6.0975552e-05), T(16777217.0),
                             std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                             std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::denorm_min()};
        values.insert(values.end(), std::begin(special), std::end(special));
        while (values.size() < sample_count) {
            T value;
            const uint64_t bits = random();
            std::memcpy(&value, &bits, sizeof value);
            switch (values.size() % 3) {
            case 0: values.push_back(value); break;
            case 1: values.push_back(static_cast<T>(static_cast<int>(bits % 1024) - 512) / 2); break;
            default:
                values.push_back(static_cast<T>(
                    std::ldexp(static_cast<double>(static_cast<int64_t>(bits)), -static_cast<int>(bits % 70))));
                break;
            }
        }
    } else {
        while (values.size() < sample_count)
            values.push_back(static_cast<T>(random() >> (values.size() % (8 * sizeof(T)))));
    }
    return values;
}

Real to_integer(Real x, const std::string& mode) {
    if (mode == "_rte")
        return rintq(x);
    if (mode == "_rtp")
        return ceilq(x);
    return mode == "_rtn" ? floorq(x) : truncq(x);
}

template <class T>
T to_floating(Real x, const std::string& mode) {
    const T nearest = static_cast<T>(x);
    if (isnanq(x) || static_cast<Real>(nearest) == x)
        return nearest;
    const bool is_above = static_cast<Real>(nearest) > x;
    const bool wants_below = mode == "_rtn" || (mode == "_rtz" && x > 0);
    const bool wants_above = mode == "_rtp" || (mode == "_rtz" && x < 0);
    if (is_above && wants_below)
        return next_number(nearest, T(-std::numeric_limits<T>::infinity()));
    if (!is_above && wants_above)
        return next_number(nearest, std::numeric_limits<T>::infinity());
    return nearest;
}

// What the conversion gives; false when the specification leaves it open.
template <class To, class From>
bool reference(From from, const std::string& mode, bool saturates, To& result) {
    const Real value = static_cast<Real>(from);
    if constexpr (is_floating<To>) {
        result = to_floating<To>(value, mode);
        return true;
    } else {
        const Real low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
        if (isnanq(value)) {
            result = 0;
            return saturates;
        }
        const Real whole = to_integer(value, mode);
        const bool is_in_range = whole >= low && whole <= high;
        if constexpr (std::is_integral_v<From>) {
            if (!is_in_range && !saturates) {
                result = static_cast<To>(from);  // modulo 2^n
                return true;
            }
        }
        result = is_in_range   ? static_cast<To>(whole)
                 : whole < low ? std::numeric_limits<To>::min()
                               : std::numeric_limits<To>::max();
        return is_in_range || saturates;
    }
}

template <class T>
bool are_same(T a, T b) {
    if constexpr (is_floating<T>)
        if (std::isnan(a) || std::isnan(b))
            return std::isnan(a) && std::isnan(b);
    return std::memcmp(&a, &b, sizeof a) == 0;
}

std::string vector_of(const std::string& type, int width) { return width == 1 ? type : type + std::to_string(width); }

std::string kernel_name(const std::string& conversion, const std::string& source) {
    return conversion + "_from_" + source;
}

std::string kernel_text(const std::string& conversion, const std::string& destination, const std::string& source,
                        int width) {
    const std::string load = width == 1 ? "a[i]" : "vload" + std::to_string(width) + "(i, a)";
    const std::string call = conversion + "(" + load + ")";
    const std::string store =
        width == 1 ? "out[i] = " + call : "vstore" + std::to_string(width) + "(" + call + ", i, out)";
    return kernel_for(width) + kernel_name(conversion, source) + "(global const " + source + "* a, global " +
           destination + "* out) {\n    size_t i = get_global_id(0);\n    " + store + ";\n}\n";
}

}  // namespace

ConversionReport check_conversions(const std::vector<std::string>& sources, const std::string& destination, int width) {
    const bool is_real = destination == "half" || destination == "float" || destination == "double";
    std::vector<std::pair<std::string, std::string>> suffixes;  // _sat, mode
    for (const char* mode : modes) {
        suffixes.emplace_back("", mode);
        if (!is_real)
            suffixes.emplace_back("_sat", mode);
    }
    const std::string name = "convert_" + vector_of(destination, width);
    std::string source;
    for (const auto& [saturation, mode] : suffixes)
        for (const std::string& from : sources)
            source += kernel_text(name + saturation + mode, destination, from, width);
    test::KernelRunner runner{source};

    ConversionReport report;
    const auto check = [&]<class To, class From>(To, From, const std::string& from_name) {
        Buffer<From> inputs = samples<From>();
        inputs.resize(inputs.size() / static_cast<size_t>(width) * static_cast<size_t>(width));
        for (const auto& [saturation, mode] : suffixes) {
            Buffer<To> outputs(inputs.size());
            void* const pointers[] = {inputs.data(), outputs.data()};
            const std::string conversion = name + saturation + mode;
            runner.run(kernel_name(conversion, from_name), pointers, inputs.size() / static_cast<size_t>(width));
            ++report.conversions;
            for (size_t i = 0; i < inputs.size(); ++i) {
                To expected{};
                if (!reference(inputs[i], mode, !saturation.empty(), expected) || are_same(expected, outputs[i]))
                    continue;
                report.failures += conversion + "(" + from_name + " " + std::to_string(inputs[i]) + ") gives " +
                                   std::to_string(outputs[i]) + ", not " + std::to_string(expected) + "\n";
                break;
            }
        }
    };
    for (const std::string& from : sources)
        with_type(destination, [&](auto to) { with_type(from, [&](auto of) { check(to, of, from); }); });
    return report;
}

}  // namespace polder::math
