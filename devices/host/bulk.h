// Copies and fills of any size, on as many threads of a pool as the memory's bandwidth needs.
#pragma once

#include <host/operation.h>
#include <host/worker_pool.h>

namespace polder::devices {

// From this size on, a second thread makes a transfer faster.
inline constexpr uint64_t bulk_parallel_bytes = uint64_t{512} * 1024;

void execute_bulk_copy(const CopyRecord& copy, WorkerPool& pool, Workspace& workspace);
void execute_bulk_fill(const FillRecord& fill, WorkerPool& pool, Workspace& workspace);

} // namespace polder::devices
