// build_id: which build of Polder this is, for CL_DRIVER_VERSION and for the binaries of programs.
// Any thread.
#pragma once

#include <string_view>

namespace polder {

// The first 16 hexadecimal digits of the linker's build id, a hash of the contents of the library (or of the test that
// Polder is a part of). Empty when it was linked without one.
[[nodiscard]] std::string_view build_id();

} // namespace polder
