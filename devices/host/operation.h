// Records of submitted operations, as they lie in a queue's OperationLog.
//
// Written by the submitting thread, read by the one thread that drains the queue, never destroyed: all of
// them are trivially destructible. Everything that the caller's operation pointed to has been copied
// behind the record, and device addresses have been converted to addresses that the executing thread can dereference.
#pragma once

#include <atomic>
#include <host/interconnect.h>
#include <polder/driver.h>

namespace polder::devices {

class HostKernel;
class PooledQueue;

enum class OperationKind : uint8_t { marker, copy, fill, launch, call };

struct Operation {
    Operation* next = nullptr;
    driver::OperationTimes* times = nullptr;
    PooledQueue* queue = nullptr;  // null for the blocks that a kernel enqueues
    OperationKind kind = OperationKind::marker;
    bool first_in_chunk = false;
    bool has_failed_wait = false;  // a wait had failed already at the submission
    bool needs_previous = false;  // waits for the operation before it in the queue
    uint32_t wait_count = 0;
    uint32_t waits_seen = 0;  // so many waits, from the first, are known to be complete
    driver::Timepoint* waits = nullptr;
};

struct CopyRecord : Operation {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    driver::RectShape shape;
    driver::RectLayout from_layout;
    driver::RectLayout to_layout;
    LinkDirection direction = LinkDirection::local;
};

struct FillRecord : Operation {
    std::byte* to = nullptr;
    uint64_t size = 0;
    uint32_t pattern_bytes = 0;
    std::byte pattern[driver::FillOperation::max_pattern_bytes];
};

struct LaunchRecord : Operation {
    const HostKernel* kernel = nullptr;
    const driver::HostCode* code = nullptr;  // what is executed; chosen when execution begins
    const driver::HostCode* rival = nullptr;  // to be measured beside `code` (code_contest.h), or null
    const std::byte* arguments = nullptr;
    uint64_t group_count = 0;
    uint64_t items_per_group = 0;
    uint64_t local_bytes = 0;
    uint64_t scratch_bytes = 0;
    uint64_t stack_bytes = 0;  // the largest need of the kernel and of the blocks that it may enqueue
    std::atomic<bool> printed{false};
    driver::LaunchBlocks blocks;
    LaunchContext context;
};

struct CallRecord : Operation {
    driver::HostOperation operation;
};

} // namespace polder::devices
