// Khronos's SPIR-V headers, with the function HasResultAndType.
#pragma once

#ifndef SPV_ENABLE_UTILITY_CODE
#define SPV_ENABLE_UTILITY_CODE
#endif
#include <spirv/unified1/spirv.hpp>
