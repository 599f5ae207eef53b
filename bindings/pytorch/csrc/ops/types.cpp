// One table with the names of each element type, and the macros that load, store and compute it.
#include "types.h"

#include "../platform.h"

#include <c10/util/Exception.h>
#include <cstring>

namespace torch_opencl {
namespace {

struct Row {
    c10::ScalarType type;
    const char* storage;
    const char* compute;
    const char* short_name;
    const char* least;
    const char* greatest;
};

constexpr Row rows[] = {
    {c10::kFloat, "float", "float", "f32", "-INFINITY", "INFINITY"},
    {c10::kDouble, "double", "double", "f64", "-INFINITY", "INFINITY"},
    {c10::kHalf, "half", "float", "f16", "-INFINITY", "INFINITY"},
    {c10::kBFloat16, "ushort", "float", "bf16", "-INFINITY", "INFINITY"},
    {c10::kByte, "uchar", "uchar", "u8", "0", "UCHAR_MAX"},
    {c10::kChar, "char", "char", "i8", "CHAR_MIN", "CHAR_MAX"},
    {c10::kShort, "short", "short", "i16", "SHRT_MIN", "SHRT_MAX"},
    {c10::kInt, "int", "int", "i32", "INT_MIN", "INT_MAX"},
    {c10::kLong, "long", "long", "i64", "LONG_MIN", "LONG_MAX"},
    {c10::kBool, "uchar", "uchar", "b8", "0", "1"},
    {c10::kComplexFloat, "float2", "float2", "c64", "", ""},
    {c10::kComplexDouble, "double2", "double2", "c128", "", ""},
};

const Row* find(c10::ScalarType type) {
    for (const Row& row : rows)
        if (row.type == type)
            return &row;
    return nullptr;
}

const Row& row_of(c10::ScalarType type) {
    const Row* const row = find(type);
    TORCH_CHECK_NOT_IMPLEMENTED(row, "opencl: no kernels for elements of type ", type);
    return *row;
}

}  // namespace

bool is_supported(c10::ScalarType type, bool has_double) {
    return is_known(type) && (has_double || type != c10::kDouble);
}

bool is_supported_complex(c10::ScalarType type, bool has_double) {
    return type == c10::kComplexFloat || (type == c10::kComplexDouble && has_double);
}

void check_supported(c10::ScalarType type, int device, const char* operation) {
    TORCH_CHECK_NOT_IMPLEMENTED(is_supported(type, Platform::get().device(device).has_double), "opencl: ", operation,
                                " has no kernel for elements of type ", type, " on opencl:", device);
}

const char* storage_name(c10::ScalarType type) { return row_of(type).storage; }
const char* compute_name(c10::ScalarType type) { return row_of(type).compute; }
const char* short_name(c10::ScalarType type) { return row_of(type).short_name; }

bool is_floating(c10::ScalarType type) { return c10::isFloatingType(type); }

void check_floating(c10::ScalarType type, const char* operation) {
    TORCH_CHECK_NOT_IMPLEMENTED(is_floating(type), "opencl: ", operation, " has no kernel for ", type);
}

c10::ScalarType compute_type(c10::ScalarType type) {
    return type == c10::kHalf || type == c10::kBFloat16 ? c10::kFloat : type;
}

std::string access_macros(const std::string& suffix, c10::ScalarType type) {
    std::string load = "((p)[i])";
    std::string store = "((p)[i] = (" + std::string(storage_name(type)) + ")(v))";
    if (type == c10::kHalf) {
        load = "vload_half(i, p)";
        store = "vstore_half((float)(v), i, p)";
    } else if (type == c10::kBFloat16) {
        load = "as_float((uint)(p)[i] << 16)";
        store = "((p)[i] = to_bfloat16((float)(v)))";
    } else if (type == c10::kBool) {
        store = "((p)[i] = (v) != 0)";
    } else if (type == c10::kByte) {
        store = "((p)[i] = (uchar)(long)(v))";  // negative floats too are reduced modulo 256
    } else if (c10::isComplexType(type)) {
        store = "((p)[i] = convert_" + std::string(storage_name(type)) + "(v))";
    }
    return "#define LOAD" + suffix + "(p, i) " + load + "\n#define STORE" + suffix + "(p, i, v) " + store + "\n";
}

constexpr const char* bfloat16_source =
    "inline ushort to_bfloat16(float v) { uint u = as_uint(v); return isnan(v) ? (ushort)0x7fc0 : "
    "(ushort)((u + 0x7fff + ((u >> 16) & 1)) >> 16); }\n";

std::string compute_type_macros(c10::ScalarType type) {
    const Row& row = row_of(type);
    if (c10::isComplexType(type))
        return std::string("typedef ") + row.compute + " T;\ntypedef " + compute_name(c10::toRealValueType(type)) +
               " R;\n" + bfloat16_source;
    return std::string("typedef ") + row.compute + " T;\n#define TMIN ((T)" + row.least + ")\n#define TMAX ((T)" +
           row.greatest + ")\n#define IS_FLOAT " + (is_floating(type) ? "1" : "0") + "\n#define IS_BOOL " +
           (type == c10::kBool ? "1" : "0") + "\n" + bfloat16_source;
}

namespace {

template <typename T>
ScalarBytes bytes_of(T value) {
    ScalarBytes made;
    made.size = sizeof(value);
    std::memcpy(made.bytes, &value, sizeof(value));
    return made;
}

// Converts a number that does not fit by wrap-around instead of an error, as PyTorch's own kernels do.
int64_t integer_of(const c10::Scalar& scalar) {
    return scalar.isFloatingPoint() ? static_cast<int64_t>(scalar.toDouble()) : scalar.toLong();
}

}  // namespace

ScalarBytes scalar_bytes(const c10::Scalar& scalar, c10::ScalarType type) {
    switch (compute_type(type)) {
    case c10::kFloat: return bytes_of(static_cast<float>(scalar.toDouble()));
    case c10::kDouble: return bytes_of(scalar.toDouble());
    case c10::kComplexFloat: return bytes_of(static_cast<c10::complex<float>>(scalar.toComplexDouble()));
    case c10::kComplexDouble: return bytes_of(scalar.toComplexDouble());
    case c10::kByte: return bytes_of(static_cast<uint8_t>(integer_of(scalar)));
    case c10::kChar: return bytes_of(static_cast<int8_t>(integer_of(scalar)));
    case c10::kShort: return bytes_of(static_cast<int16_t>(integer_of(scalar)));
    case c10::kInt: return bytes_of(static_cast<int32_t>(integer_of(scalar)));
    case c10::kBool: return bytes_of(static_cast<uint8_t>(scalar.toBool()));
    default: return bytes_of(integer_of(scalar));
    }
}

}  // namespace torch_opencl
