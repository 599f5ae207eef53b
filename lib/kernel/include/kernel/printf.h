// The host's part of OpenCL C's printf (6.15.14): formats one call's arguments as one text, and passes it
// to LaunchContext::print.
//
// Compiled kernels call polder_printf, from any thread at once, so its name and signature are part of the
// kernel ABI. Arguments arrive as the compiler packed them: one after another, each at the next multiple of
// 8 bytes. Integers of up to 32 bits are ints, float has become double, vectors keep their element type, and a
// 3-vector takes the room of a 4-vector.
#pragma once

#include <cstddef>
#include <optional>
#include <polder/kernel_abi.h>
#include <span>
#include <string>
#include <string_view>

namespace polder::kernel {

// The text of one printf call; nullopt when the format is malformed or wants more arguments than there are.
// A string's slot holds its address, or, when there is a `record`, its offset in the record; 0 is a null pointer.
[[nodiscard]] std::optional<std::string> format_text(std::string_view format, std::span<const std::byte> arguments,
                                                     std::span<const std::byte> record = {});

} // namespace polder::kernel

// What printf returns to the kernel: 0, or -1 when nothing was printed.
extern "C" int polder_printf(const polder::LaunchContext* context, const char* format,
                             const std::byte* arguments, size_t arguments_size) noexcept;
