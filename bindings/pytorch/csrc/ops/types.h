// Element types as OpenCL C names and macros. float16 and bfloat16 are stored as such and computed in float, so that devices
// without half-precision arithmetic have them too. Complex numbers are vectors of two, in pointwise kernels alone. Quantized types have no
// kernels.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <string>

namespace torch_opencl {

// Whether kernels can be made for the type on a device with (or without) double precision.
bool is_supported(c10::ScalarType type, bool has_double);
// Whether kernels can be made for the type on some device. Cheap: it is asked of each tensor of each call.
constexpr bool is_known(c10::ScalarType type) {
    using enum c10::ScalarType;
    switch (type) {
    case Float:
    case Double:
    case Half:
    case BFloat16:
    case Byte:
    case Char:
    case Short:
    case Int:
    case Long:
    case Bool: return true;
    default: return false;
    }
}
// Throws NotImplementedError naming the type when it is not supported.
void check_supported(c10::ScalarType type, int device, const char* operation);

// The type of an element in memory, such as "ushort" for bfloat16.
const char* storage_name(c10::ScalarType type);
// The type that an element is computed in: float for the types of less precision.
const char* compute_name(c10::ScalarType type);
c10::ScalarType compute_type(c10::ScalarType type);
bool is_floating(c10::ScalarType type);
// For an operation that is of floating-point numbers alone: throws NotImplementedError for others, after which the operator ends with the CPU's
// error.
void check_floating(c10::ScalarType type, const char* operation);
// Whether pointwise kernels can be made for these complex numbers.
bool is_supported_complex(c10::ScalarType type, bool has_double);
// "f32", "b8": short and unique, for keys of kernels.
const char* short_name(c10::ScalarType type);

// #define LOAD<suffix>(p, i) and STORE<suffix>(p, i, v) for elements of a type.
std::string access_macros(const std::string& suffix, c10::ScalarType type);
// T: the compute type. Of a complex one, R: the type of its parts. Of others, TMIN and TMAX its least and greatest value, IS_FLOAT 0 or 1.
std::string compute_type_macros(c10::ScalarType type);

// A scalar argument as the bytes of a compute type.
struct ScalarBytes {
    char bytes[16] = {};
    size_t size = 0;
};
ScalarBytes scalar_bytes(const c10::Scalar& scalar, c10::ScalarType type);

}  // namespace torch_opencl
