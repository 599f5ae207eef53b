// Tries an ICD in a child process, which loads it and queries its platforms and devices. Only an ICD that does not crash there is
// loaded into this process. Any thread.
#pragma once

#include <polder/result.h>
#include <string>

namespace polder::proxy {

// device_not_found with the reason as detail: the library cannot be loaded, the child crashed, or it did not end within
// `wait_ms`.
[[nodiscard]] Result<void> probe_icd(const std::string& library, uint32_t wait_ms = 20'000);

}  // namespace polder::proxy
