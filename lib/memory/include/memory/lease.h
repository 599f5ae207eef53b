// Lease: a block of memory, and the timepoints that have to be complete before its first use.
//
// Memory is stream-ordered: a block that was freed while commands in flight still use it can be leased again at once,
// because the new user's commands wait on their device for those commands. Commands on the same queue need no wait
// at all. Only the host has to wait before it accesses such a block (LeaseTerms::Consumer::host).
//
// Values without locks. Sizes are bytes.
#pragma once

#include <base/small_vector.h>
#include <bufalloc/region_allocator.h>

#include <cstdint>
#include <polder/driver.h>
#include <polder/types.h>

namespace polder::memory {

// A block in use. Its owner frees it once, to the allocator that allocated it.
struct Block {
    DeviceAddress address;
    ByteCount size;  // the requested size
    uint32_t region = 0;
    RegionAllocator::Block place;
};

using Timepoints = SmallVector<driver::Timepoint, 3>;

struct Lease {
    Block block;
    // The first use of the block waits for these. Empty when the block is ready.
    Timepoints after;
    // The system does not back its pages yet.
    bool is_fresh = false;
};

struct LeaseRequest {
    ByteCount size;  // 0 counts as 1
    Alignment alignment;
};

enum class WhenFull : uint8_t {
    wait,  // waits for earlier requests, and for work in flight whose memory has been freed
    wait_for_turn,  // waits for earlier requests only
    fail,
};

struct LeaseTerms {
    enum class Consumer : uint8_t {
        host,    // the block is ready when the call returns
        device,  // Lease::after may name work in flight
    };
    Consumer consumer = Consumer::host;
    // The queue whose commands will use the block first, if that is known: a block that only this queue still uses
    // costs nothing to use again.
    const driver::Queue* queue = nullptr;
    WhenFull when_full = WhenFull::wait;
};

} // namespace polder::memory
