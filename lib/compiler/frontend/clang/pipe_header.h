// Another definition of CLK_NULL_RESERVE_ID. Clang's is a cast of an integer to an opaque type, which LLVM cannot optimize for
// SPIR's targets: InstCombine fails an assertion. A program gets this header only when its source may use the macro.
#pragma once

#include <string_view>

namespace polder::compiler {

inline constexpr const char* pipe_header_path = "/polder-headers/pipe.h";

inline constexpr std::string_view pipe_header = R"(
#if defined(CLK_NULL_RESERVE_ID) && defined(__opencl_c_pipes)
reserve_id_t __polder_null_reservation(void) __attribute__((const));
#undef CLK_NULL_RESERVE_ID
#define CLK_NULL_RESERVE_ID __polder_null_reservation()
#endif
)";

}  // namespace polder::compiler
