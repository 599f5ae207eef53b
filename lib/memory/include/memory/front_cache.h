// FrontCache: free small blocks that can be allocated without the pool's lock.
//
// Threads are distributed over shards. Each shard has its own lock and cache lines, so that threads on different
// shards share nothing. A shard has a few blocks, newest last, all of them ready. The cache is used only after threads
// have waited for the pool's lock a few times, so that programs with one thread get exact statistics and dense packing.
//
// take and put are O(blocks of one shard). Any thread may call any function.
#pragma once

#include <base/biased_mutex.h>
#include <base/thread_number.h>
#include <memory/lease.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <span>

namespace polder::memory {

class FrontCache {
public:
    static constexpr uint64_t block_bytes_max = uint64_t{64} << 10;

    [[nodiscard]] bool is_on() const { return shards_.load(std::memory_order_acquire) != nullptr; }
    // Called when a thread has found the pool's lock taken.
    void note_contention() noexcept {
        if (is_on() || contentions_.fetch_add(1, std::memory_order_relaxed) != contentions_tolerated)
            return;
        owned_.reset(new (std::nothrow) Shards);
        shards_.store(owned_.get(), std::memory_order_release);
    }

    // Takes the newest block of this thread's shard that satisfies fits(const Block&).
    template <class Fits>
    [[nodiscard]] std::optional<Block> take(Fits&& fits) {
        Shard& shard = mine();
        const BiasedLock lock(shard.mutex);
        for (uint32_t index = shard.count; index-- > 0;) {
            if (!fits(shard.blocks[index]))
                continue;
            const Block block = shard.blocks[index];
            ++shard.hits;
            for (--shard.count; index < shard.count; ++index)
                shard.blocks[index] = shard.blocks[index + 1];
            return block;
        }
        return std::nullopt;
    }

    // Keeps a free block in this thread's shard. False: the block is too large. When the shard is full, calls
    // give_back(std::span<const Block>) with older blocks that it removes, without the shard's lock.
    template <class GiveBack>
    [[nodiscard]] bool put(const Block& block, GiveBack&& give_back) noexcept {
        if (block.place.size.value > block_bytes_max)
            return false;
        std::array<Block, 8> surplus;
        uint32_t surplus_count = 0;
        {
            Shard& shard = mine();
            const BiasedLock lock(shard.mutex);
            if (shard.count == shard.blocks.size()) {
                surplus_count = static_cast<uint32_t>(surplus.size());
                const auto kept = shard.blocks.begin() + surplus_count;
                std::copy(shard.blocks.begin(), kept, surplus.begin());
                std::copy(kept, shard.blocks.end(), shard.blocks.begin());
                shard.count -= surplus_count;
            }
            shard.blocks[shard.count++] = block;
        }
        if (surplus_count != 0) [[unlikely]]
            give_back(std::span<const Block>{surplus.data(), surplus_count});
        return true;
    }

    // Removes all blocks of every shard and calls f(std::span<const Block>) with them.
    template <class F>
    void flush(F&& f) {
        Shards* const all = shards_.load(std::memory_order_acquire);
        if (!all)
            return;
        for (Shard& shard : *all) {
            const BiasedLock lock(shard.mutex);
            f(std::span<const Block>{shard.blocks.data(), shard.count});
            shard.count = 0;
        }
    }
    struct Held {
        uint64_t bytes = 0;
        uint64_t blocks = 0;
        uint64_t hits = 0;  // blocks taken since the beginning
    };
    [[nodiscard]] Held held() const {
        Held sum;
        if (Shards* const all = shards_.load(std::memory_order_acquire))
            for (Shard& shard : *all) {
                const BiasedLock lock(shard.mutex);
                sum.blocks += shard.count;
                sum.hits += shard.hits;
                for (uint32_t index = 0; index < shard.count; ++index)
                    sum.bytes += shard.blocks[index].place.size.value;
            }
        return sum;
    }

private:
    static constexpr uint32_t contentions_tolerated = 32;
    static constexpr uint32_t shard_count = 32;
    struct alignas(128) Shard {
        BiasedMutex mutex;
        uint32_t count = 0;
        uint64_t hits = 0;
        std::array<Block, 16> blocks;
    };
    using Shards = std::array<Shard, shard_count>;

    [[nodiscard]] Shard& mine() { return (*shards_.load(std::memory_order_acquire))[thread_number() % shard_count]; }

    std::atomic<uint32_t> contentions_{0};
    std::atomic<Shards*> shards_{nullptr};
    std::unique_ptr<Shards> owned_;
};

// Locks an allocator's mutex until the end of the scope, and notes when another thread had it.
class POLDER_THREAD_ANNOTATION(scoped_lockable) NotingLock {
public:
    NotingLock(BiasedMutex& mutex, FrontCache& front) POLDER_THREAD_ANNOTATION(acquire_capability(mutex))
        : mutex_(mutex), held_(mutex.lock([&front] { front.note_contention(); })) {}
    ~NotingLock() POLDER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(held_); }
    NotingLock(const NotingLock&) = delete;
    NotingLock& operator=(const NotingLock&) = delete;

private:
    BiasedMutex& mutex_;
    const BiasedMutex::Held held_;
};

}  // namespace polder::memory
