// Blocks of device memory. Released blocks are kept, and the next tensors of the same sizes take them without a call of OpenCL.
#pragma once

#include "platform.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace torch_opencl {

struct Block {
    uint64_t address = 0;
    size_t bytes = 0;  // the requested size
    size_t capacity = 0;  // the allocated size
    int device = 0;
    cl_mem buffer = nullptr;  // null: unified shared memory
    std::vector<cl_command_queue> users;  // other streams, from recordStream; only where releases have to be deferred
    bool is_kept = false;
    Block* next = nullptr;  // in the list of a BlockCache
};

// Released blocks of one device, listed by size. All commands on its blocks were on the device's default stream, and a block is only reused
// on that stream, whose commands run in order. So nothing has to wait. The owner of the blocks holds a lock for it.
class BlockCache {
public:
    // The size of the block that serves a request. Larger blocks than block_bytes_max are not kept: a kernel that fills one takes
    // much longer than an allocation.
    static size_t capacity_for(size_t bytes) {
        return bytes > block_bytes_max ? bytes : (bytes + step - 1) / step * step;
    }

    // A block of this capacity, or null.
    Block* take(size_t capacity) {
        if (capacity > block_bytes_max)
            return nullptr;
        Block*& first = lists_[capacity / step];
        Block* const taken = first;
        if (!taken)
            return nullptr;
        first = taken->next;
        taken->is_kept = false;
        bytes_ -= capacity;
        return taken;
    }
    static bool may_keep(const Block& block) { return block.capacity <= block_bytes_max; }
    // Keeps the block. False when it is too large, or when more than `bytes_max` would be kept.
    bool keep(Block& block, size_t bytes_max) {
        if (!may_keep(block) || bytes_ + block.capacity > bytes_max)
            return false;
        Block*& first = lists_[block.capacity / step];
        block.next = first;
        block.is_kept = true;
        first = &block;
        smallest_ = std::min(smallest_, block.capacity / step);
        bytes_ += block.capacity;
        return true;
    }
    // Any block, or null when there is none.
    Block* take_any() {
        if (bytes_ == 0)
            return nullptr;
        while (!lists_[smallest_])
            ++smallest_;
        return take(smallest_ * step);
    }
    [[nodiscard]] size_t bytes() const { return bytes_; }

private:
    static constexpr size_t step = 512;
    static constexpr size_t block_bytes_max = 1 << 20;
    std::array<Block*, block_bytes_max / step + 1> lists_{};
    size_t smallest_ = 0;  // the lists before it are empty
    size_t bytes_ = 0;
};

}  // namespace torch_opencl
