// Half precision without a pragma (decision 170). Clang refuses variables, loads and literals of type half until the program enables
// cl_khr_fp16; doubles need no pragma since OpenCL C 1.2. A program can still disable the extension.
//
// Always included, and first: the other headers declare functions of half.
#pragma once

#include <string_view>

namespace polder::compiler {

inline constexpr const char* half_header_path = "/polder-headers/half.h";

inline constexpr std::string_view half_header = R"(
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
)";

}  // namespace polder::compiler
