// The error codes of cl_khr_command_buffer and the extensions on top of it.
#pragma once

#include <polder/result.h>

namespace polder::runtime {

constexpr Status invalid_command_buffer{-1138};
constexpr Status invalid_sync_point_wait_list{-1139};
constexpr Status incompatible_command_queue{-1140};
constexpr Status invalid_mutable_command{-1141};

}  // namespace polder::runtime
