// Executes one kernel launch: all of its work-groups, on as many threads as pay.
#pragma once

#include <host/engine.h>
#include <host/operation.h>
#include <polder/result.h>

namespace polder::devices {

// Called by the thread that drains the queue, whose workspace is `workspace`.
[[nodiscard]] Status execute_launch(LaunchRecord& launch, Engine& engine, Workspace& workspace);

// True when a worker should begin at once instead of waiting for somebody to ask.
[[nodiscard]] bool is_large(const LaunchRecord& launch);

} // namespace polder::devices
