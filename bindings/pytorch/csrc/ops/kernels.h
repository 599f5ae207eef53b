// Functions in OpenCL C that expressions of pointwise kernels may call.
#pragma once

#include <span>
#include <string>

namespace torch_opencl {

struct Helper {
    const char* name;
    const char* source;  // it may call earlier functions of its table
};

// The source of the functions that `expression` calls, and of those that they call. T is the compute type.
std::string helper_functions(const std::string& expression);

// Special functions (special_functions.cpp). They are accurate to a few units in the last place of T, but for igamma of large arguments.
std::span<const Helper> special_functions();

}  // namespace torch_opencl
