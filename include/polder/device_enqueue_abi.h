// The calling convention between kernels that enqueue blocks (OpenCL C 6.15.17) and the drivers that execute kernels on the host.
//
// A kernel calls the functions of lib/kernel/cl/device_enqueue.cl, which call those of kernel/device_enqueue.h, which call the
// DeviceEnqueue in LaunchContext. Any thread that executes the launch may call any of its functions. The driver executes the blocks after
// the kernel that enqueued them, and completes the launch after the last block.
//
// A queue is a number (device_queue_number); 0 is no queue. An event is a number that is valid during the launch only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polder {

// OpenCL C's ndrange_t. When all local sizes are 0, the driver chooses them.
struct BlockRange {
    uint32_t work_dim;
    uint64_t global_offset[3];
    uint64_t global_size[3];
    uint64_t local_size[3];
};

// The argument of a block's kernel: bytes that the call copies.
struct BlockLiteral {
    const void* bytes;
    uint32_t size;
    uint32_t alignment;
};

struct BlockRequest {
    uint64_t queue;
    // CLK_ENQUEUE_FLAGS_*. Blocks run when their kernel is complete, which satisfies all of them.
    static constexpr uint32_t exact_errors = uint32_t{1} << 30;  // the program was built with -g
    uint32_t flags;
    const BlockRange* range;
    uint32_t event_count;
    const uint64_t* events;  // the events that the block waits for
    uint64_t* event;  // receives the block's event; null: the caller wants none
    const char* block;  // the null-terminated name of the block's kernel. Null: the request is a marker.
    BlockLiteral literal;  // the argument of the block's kernel; copied by the call
    uint32_t local_count;
    const uint64_t* local_bytes;  // of each __local argument
};

// What OpenCL C's functions return.
enum class EnqueueStatus : int32_t {
    success = 0,
    invalid_event_wait_list = -57,
    event_allocation_failure = -100,
    failure = -101,
    invalid_queue = -102,
    invalid_range = -160,
    device_queue_full = -161,
    out_of_resources = -5,
    invalid_argument_size = -51,
};

// The third and the fourth are of a range.
enum class BlockQuery : uint32_t {
    group_size_max,
    preferred_multiple,
    sub_group_size_max,
    sub_group_count,
    sub_group_size,
    sub_groups_max,
};

inline constexpr uint64_t null_event = ~uint64_t{0};
// The most events that one launch can have at a time: CL_DEVICE_MAX_ON_DEVICE_EVENTS.
inline constexpr uint32_t events_of_blocks_max = uint32_t{1} << 20;

class DeviceEnqueue {
public:
    [[nodiscard]] virtual EnqueueStatus enqueue(const BlockRequest& request) = 0;
    [[nodiscard]] virtual uint32_t query(BlockQuery what, const char* block, const BlockRange* range) = 0;
    [[nodiscard]] virtual uint64_t default_queue() = 0;
    // Returns null_event when the launch has events_of_blocks_max events already.
    [[nodiscard]] virtual uint64_t create_user_event() = 0;
    // `status`: CL_COMPLETE or negative.
    virtual void set_user_event_status(uint64_t event, int32_t status) = 0;
    virtual void retain_event(uint64_t event) = 0;
    virtual void release_event(uint64_t event) = 0;
    [[nodiscard]] virtual bool is_valid_event(uint64_t event) = 0;
    // Writes to value[0] the nanoseconds from the start of the event's block to its end, and to value[1] those to the end of all blocks
    // that it enqueued: now if the event is complete, otherwise when it becomes complete.
    virtual void capture_execution_time(uint64_t event, uint64_t* value) = 0;

protected:
    ~DeviceEnqueue() = default;
};

// The number of a queue: unique in the process, never 0. `size` is the queue's size in bytes (CL_QUEUE_SIZE).
[[nodiscard]] constexpr uint64_t device_queue_number(uint32_t id, uint32_t size) { return uint64_t{id} << 32 | size; }
[[nodiscard]] constexpr uint32_t size_of_device_queue(uint64_t number) { return static_cast<uint32_t>(number); }

}  // namespace polder
