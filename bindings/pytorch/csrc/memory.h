// Device memory by its address: allocation, release, and copies. A map finds the allocation of an address inside of a tensor,
// because OpenCL's functions need a buffer and an offset. Any thread.
//
// Small released blocks of a device that uses its default stream alone are kept for the next tensors (blocks.h). All other released
// memory goes back to the implementation, which has a cache of its own. Memory must not be released before the commands that use it. Polder ensures this itself, for all queues. With other
// implementations the memory is kept until markers on all used streams of its device are complete (`Deferred`).
#pragma once

#include "stream.h"

#include <cstddef>
#include <vector>

namespace torch_opencl {

// What the package counts itself, for one device.
struct Counts {
    int64_t current = 0;
    int64_t peak = 0;
    int64_t added = 0;
    int64_t removed = 0;
    void add(int64_t amount) {
        current += amount;
        added += amount;
        peak = current > peak ? current : peak;
    }
    void remove(int64_t amount) {
        current -= amount;
        removed += amount;
    }
};

struct MemoryCounts {
    Counts allocations;
    Counts requested;  // bytes
    Counts from_implementation;  // blocks, those that are kept included
    int64_t out_of_memory = 0;
    int64_t retries = 0;
};

struct LiveBlock {
    uint64_t address = 0;
    size_t bytes = 0;
};

// Throws c10::OutOfMemoryError. `bytes` is not 0.
void* allocate_memory(int device, size_t bytes);
// `address` came from allocate_memory.
void free_memory(void* address) noexcept;
// A buffer and the offset of an address in it. No buffer where the address is in no allocation.
struct Place {
    cl_mem buffer = nullptr;
    size_t offset = 0;
};
Place place_of(const void* address);
// -1 when the address is in no allocation.
int device_of_address(const void* address);

// On the current stream of `device`. Wait::no: the call returns before the copy is complete.
enum class Wait { no, yes };
void copy_from_host(int device, void* target, const void* source, size_t bytes, Wait wait);
void copy_to_host(int device, void* target, const void* source, size_t bytes, Wait wait);
void copy_on_device(int device, void* target, const void* source, size_t bytes);
// Between two devices; ordered with the current streams of both.
void copy_between(int target_device, void* target, int source_device, const void* source, size_t bytes);
// Copies between host and devices since the process began.
uint64_t host_copies();

// Gives unused memory back.
void trim_memory();
// Records that commands of `queue` use the memory at `address`, so that a release waits for them too.
void use_on_stream(const void* address, cl_command_queue queue);

MemoryCounts memory_counts(int device);
void reset_counts(int device, bool peaks);
std::vector<LiveBlock> live_blocks(int device);
// No more than `fraction` of the device's memory may be allocated.
void set_memory_fraction(int device, double fraction);
// Polder's statistics of the memory of a device; false where there are none.
bool implementation_statistics(int device, cl_memory_statistics_polder* statistics);

// Memory of the host that devices copy from without staging.
void* allocate_pinned(size_t bytes);
void free_pinned(void* address) noexcept;
bool is_pinned(const void* address);
struct PinnedCounts {
    Counts allocations;
    Counts requested;  // bytes
};
PinnedCounts pinned_counts();
void reset_pinned_counts(bool peaks);

}  // namespace torch_opencl
