// The arithmetic types of OpenCL C as C++ types, for tests that go through all of them.
#pragma once

#include "half.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

namespace polder::math {

inline constexpr int all_widths[] = {1, 2, 3, 4, 8, 16};

// Calls `visit(T{}, name)` for each type.
template <class Visit>
void for_integer_types(Visit visit) {
    visit(int8_t{}, std::string{"char"});
    visit(uint8_t{}, std::string{"uchar"});
    visit(int16_t{}, std::string{"short"});
    visit(uint16_t{}, std::string{"ushort"});
    visit(int32_t{}, std::string{"int"});
    visit(uint32_t{}, std::string{"uint"});
    visit(int64_t{}, std::string{"long"});
    visit(uint64_t{}, std::string{"ulong"});
}

template <class Visit>
void for_floating_types(Visit visit) {
    visit(Half{}, std::string{"half"});
    visit(float{}, std::string{"float"});
    visit(double{}, std::string{"double"});
}

template <class Visit>
void for_all_types(Visit visit) {
    for_integer_types(visit);
    for_floating_types(visit);
}

// The integer of a type's size: what comparisons of vectors give and what selects.
template <size_t bytes>
using Signed =
    std::conditional_t<bytes == 1, int8_t,
                       std::conditional_t<bytes == 2, int16_t, std::conditional_t<bytes == 4, int32_t, int64_t>>>;

template <class T>
using SignedLike = Signed<sizeof(T)>;
template <class T>
using UnsignedLike = std::make_unsigned_t<SignedLike<T>>;

inline std::string signed_name(size_t bytes) {
    return bytes == 1 ? "char" : bytes == 2 ? "short" : bytes == 4 ? "int" : "long";
}

// Lanes of wide vectors make very much code: kernels for these run one work-item at a time.
inline std::string kernel_for(int width) {
    return width > 2 ? "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void " : "kernel void ";
}

inline std::string width_suffix(int width) { return width == 1 ? "" : std::to_string(width); }

// Element access of vectors that lie packed in arrays, vectors of one included.
inline std::string load(const std::string& array, int width) {
    return width == 1 ? array + "[i]" : "vload" + width_suffix(width) + "(i, " + array + ")";
}
inline std::string store(const std::string& value, const std::string& array, int width) {
    return width == 1 ? array + "[i] = " + value + ";"
                      : "vstore" + width_suffix(width) + "(" + value + ", i, " + array + ");";
}

} // namespace polder::math
