// Writes the printf texts of kernels to stdout; texts of several threads do not mix. Any thread.
#pragma once

#include <cstddef>

namespace polder::devices {

// For LaunchContext::print; `user` is a std::atomic<bool> that is set when something was printed.
void print_text(void* user, const char* text, size_t size);
void flush_printed();

} // namespace polder::devices
