// build_id: identifies the build of Polder, for CL_DRIVER_VERSION and for program binaries.
// Any thread.
#pragma once

#include <string_view>

namespace polder {

// The first 16 hexadecimal digits of the linker's build id, a hash of the contents of the library (or of the test that
// Polder is a part of). Empty when it was linked without one.
[[nodiscard]] std::string_view build_id();

} // namespace polder
