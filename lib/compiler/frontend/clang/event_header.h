// Another definition of CLK_NULL_EVENT, for the reason that pipe_header.h gives. A program gets this header only when its source may use the
// macro.
#pragma once

#include <string_view>

namespace polder::compiler {

inline constexpr const char* event_header_path = "/polder-headers/event.h";

inline constexpr std::string_view event_header = R"(
#if defined(CLK_NULL_EVENT) && defined(__opencl_c_device_enqueue)
clk_event_t __polder_null_event(void) __attribute__((const));
#undef CLK_NULL_EVENT
#define CLK_NULL_EVENT __polder_null_event()
#endif
)";

}  // namespace polder::compiler
