// Functions in OpenCL C that expressions of pointwise kernels may call.
#pragma once

#include <string>

namespace torch_opencl {

// The source of the functions that `expression` calls, and of those that they call. T is the compute type.
std::string helper_functions(const std::string& expression);

}  // namespace torch_opencl
