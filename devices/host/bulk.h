// Copies and fills of any size, on as many threads of an engine as it takes to saturate memory.
#pragma once

#include <host/engine.h>
#include <host/operation.h>

namespace polder::devices {

// From here on another thread pays.
inline constexpr uint64_t bulk_parallel_bytes = uint64_t{512} * 1024;

void execute_bulk_copy(const CopyRecord& copy, Engine& engine, Workspace& workspace);
void execute_bulk_fill(const FillRecord& fill, Engine& engine, Workspace& workspace);

} // namespace polder::devices
