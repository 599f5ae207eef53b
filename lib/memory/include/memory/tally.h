// Tally: the statistics of one allocator, and its limit. Any thread; no lock.
//
// A block's bytes are counted as live, then as deferred, then as free. Each step adds before it subtracts, so that the bytes in use are
// never counted too low and the limit holds while several threads allocate.
//
// For an allocator that changes blocks under one lock (Writers::one_at_a_time), counting needs no atomic read-modify-write operations.
// Otherwise, after threads have collided at the count of live bytes a few times, each thread takes a share of `share_bytes` from that count
// in advance and counts small blocks in its share, so that threads share no cache line. Until then all counts are exact; afterwards the peak
// may be too high by the shares.
#pragma once

#include <base/thread_number.h>
#include <memory/allocator.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace polder::memory {

class Tally {
public:
    enum class Writers : uint8_t {
        one_at_a_time,  // the owner calls allocate, free and the functions of deferred blocks under one lock
        many,
    };
    explicit Tally(ByteCount limit, Writers writers = Writers::many)
        : locked_(writers == Writers::one_at_a_time), limit_(limit.value) {}

    void set_limit(ByteCount limit) { limit_.store(limit.value, std::memory_order_relaxed); }
    [[nodiscard]] uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool allows(uint64_t bytes) const {
        const uint64_t most = limit();
        const uint64_t held = live() + deferred() + charged();
        return bytes <= most && held <= most - bytes;
    }

    // --- blocks ---
    // Counts an allocated block. False when the limit does not allow it.
    [[nodiscard]] bool allocate(uint64_t bytes) {
        if (locked_) {
            if (!take(bytes))
                return false;
            add(shards_[0].allocations, 1);
            return true;
        }
        const Mine mine;
        Shard& shard = shards_[mine.index];
        if (!has_shares() || bytes > shared_block_bytes_max) [[likely]] {
            if (!take(bytes) && !(gather() && take(bytes)))
                return false;
        } else if (!take_from_share(shard, bytes)) {
            return false;
        }
        mine.count(shard.allocations);
        return true;
    }
    void free(uint64_t bytes) {
        if (locked_) {
            add(shards_[0].frees, 1);
            return subtract(live_, bytes);
        }
        const Mine mine;
        Shard& shard = shards_[mine.index];
        mine.count(shard.frees);
        if (!has_shares() || bytes > shared_block_bytes_max) [[likely]]
            return subtract(live_, bytes);
        if (shard.share.fetch_add(bytes, std::memory_order_relaxed) + bytes > 2 * share_bytes)
            give_back(shard, share_bytes);
    }
    // The owner has freed the block, but commands in flight still use it.
    void defer(uint64_t bytes) {
        add(deferred_, bytes);
        add(deferred_blocks_, 1);
        free(bytes);
    }
    void end_deferred(uint64_t bytes) {
        subtract(deferred_blocks_, 1);
        subtract(deferred_, bytes);
    }
    // A deferred block was allocated again. Needs no check of the limit, which counts deferred bytes.
    void reuse_deferred(uint64_t bytes) {
        count_reused();
        raise(live_peak_, add(live_, bytes) + bytes + charged());
        end_deferred(bytes);
    }

    // Counts memory that is used without a block. False when the limit does not allow it.
    [[nodiscard]] bool charge(uint64_t bytes) {
        uint64_t before = charged();
        do {
            const uint64_t most = limit();
            if (bytes > most || before + live() + deferred() > most - bytes)
                return false;
        } while (!charged_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
        raise(live_peak_, live() + before + bytes);
        return true;
    }
    void discharge(uint64_t bytes) { charged_.fetch_sub(bytes, std::memory_order_relaxed); }
    [[nodiscard]] uint64_t charged() const { return charged_.load(std::memory_order_relaxed); }

    // --- memory from the source ---
    void reserve(uint64_t bytes) {
        reserves_.fetch_add(1, std::memory_order_relaxed);
        const uint64_t now = reserved_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        uint64_t known = reserved_peak_.load(std::memory_order_relaxed);
        while (known < now && !reserved_peak_.compare_exchange_weak(known, now, std::memory_order_relaxed)) {
        }
    }
    void release(uint64_t bytes) { reserved_.fetch_sub(bytes, std::memory_order_relaxed); }

    // Threads take shares from now on, as they do after collisions. For tests.
    void begin_shares() { meetings_.store(meetings_tolerated, std::memory_order_relaxed); }

    void count_retry() { retries_.fetch_add(1, std::memory_order_relaxed); }
    void count_out_of_memory() { out_of_memory_.fetch_add(1, std::memory_order_relaxed); }
    void reset_peak(Allocator::Peak peak) {
        if (peak == Allocator::Peak::live)
            live_peak_.store(live() + charged(), std::memory_order_relaxed);
        else
            reserved_peak_.store(reserved(), std::memory_order_relaxed);
    }

    [[nodiscard]] uint64_t live() const {
        const uint64_t all = live_.load(std::memory_order_relaxed);
        return has_shares() ? all - std::min(all, sum(&Shard::share)) : all;
    }
    [[nodiscard]] uint64_t deferred() const { return deferred_.load(std::memory_order_relaxed); }
    [[nodiscard]] uint64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }
    [[nodiscard]] uint64_t live_blocks() const {
        const uint64_t frees = sum(&Shard::frees);
        return std::max(sum(&Shard::allocations), frees) - frees;
    }
    [[nodiscard]] uint64_t free_bytes() const {
        const uint64_t all = reserved();
        return all - std::min(all, live() + deferred());
    }
    // Whether free_bytes() > bytes. Reads the threads' shares only when the result depends on them.
    [[nodiscard]] bool free_bytes_exceed(uint64_t bytes) const {
        const uint64_t all = reserved();
        const uint64_t free_at_least = all - std::min(all, live_.load(std::memory_order_relaxed) + deferred());
        if (free_at_least > bytes)
            return true;
        return has_shares() && bytes - free_at_least < shares_bytes_max && free_bytes() > bytes;
    }
    void fill(Allocator::Statistics& statistics) const {
        const auto value = [](const std::atomic<uint64_t>& count) { return count.load(std::memory_order_relaxed); };
        statistics.reserved = ByteCount{reserved()};
        statistics.reserved_peak = ByteCount{value(reserved_peak_)};
        statistics.live = ByteCount{live() + charged()};
        statistics.live_peak = ByteCount{value(live_peak_)};
        statistics.deferred = ByteCount{deferred()};
        statistics.free = ByteCount{free_bytes()};
        statistics.frees = sum(&Shard::frees);
        statistics.allocations = std::max(sum(&Shard::allocations), statistics.frees);
        statistics.live_blocks = statistics.allocations - statistics.frees;
        statistics.deferred_blocks = value(deferred_blocks_);
        statistics.retries = value(retries_);
        statistics.out_of_memory = value(out_of_memory_);
        statistics.hits = statistics.allocations - std::min(statistics.allocations, value(reserves_));
    }

private:
    static constexpr uint64_t share_bytes = uint64_t{1} << 20;
    static constexpr uint64_t shared_block_bytes_max = uint64_t{64} << 10;
    static constexpr uint32_t meetings_tolerated = 32;
    static constexpr uint32_t own_shards = 16;
    static constexpr uint32_t shard_count = 2 * own_shards;
    static constexpr uint64_t shares_bytes_max = shard_count * (2 * share_bytes + 16 * shared_block_bytes_max);
    using Count = std::atomic<uint64_t>;

    // Counts that threads keep separately. Only one thread at a time has a number below own_shards, so that it changes the counts of its shard
    // without an atomic read-modify-write; threads with higher numbers share the other shards. Any thread may take the share of another one.
    // With Writers::one_at_a_time, only the first shard is used.
    struct alignas(128) Shard {
        Count allocations{0};
        Count frees{0};
        Count share{0};  // bytes that are counted in live_, but are in no block
    };

    // The calling thread's shard.
    struct Mine {
        const uint32_t thread = thread_number();
        const uint32_t index = thread < own_shards ? thread : own_shards + thread % own_shards;

        void count(Count& events) const {
            if (thread < own_shards) [[likely]]
                events.store(events.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            else
                events.fetch_add(1, std::memory_order_relaxed);
        }
    };
    void count_reused() {
        if (locked_) {
            add(shards_[0].allocations, 1);
        } else {
            const Mine mine;
            mine.count(shards_[mine.index].allocations);
        }
    }
    [[nodiscard]] uint64_t sum(Count Shard::* count) const {
        uint64_t all = (shards_[0].*count).load(std::memory_order_relaxed);
        for (uint32_t index = 1; index < shard_count && !locked_; ++index)
            all += (shards_[index].*count).load(std::memory_order_relaxed);
        return all;
    }

    // Adds `value` and returns the count before.
    uint64_t add(Count& count, uint64_t value) {
        if (!locked_)
            return count.fetch_add(value, std::memory_order_relaxed);
        const uint64_t before = count.load(std::memory_order_relaxed);
        count.store(before + value, std::memory_order_relaxed);
        return before;
    }
    void subtract(Count& count, uint64_t value) { add(count, 0 - value); }
    void raise(Count& peak, uint64_t value) {
        uint64_t known = peak.load(std::memory_order_relaxed);
        while (known < value && !peak.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
        }
    }

    // --- the count of live bytes ---
    [[nodiscard]] bool has_shares() const { return meetings_.load(std::memory_order_relaxed) >= meetings_tolerated; }
    [[nodiscard]] bool fits(uint64_t live, uint64_t bytes) const {
        const uint64_t most = limit();
        return bytes <= most && live + deferred() + charged() <= most - bytes;
    }
    [[nodiscard]] bool take(uint64_t bytes) {
        uint64_t before = live_.load(std::memory_order_relaxed);
        if (locked_) {
            if (!fits(before, bytes))
                return false;
            live_.store(before + bytes, std::memory_order_relaxed);
        } else {
            for (uint32_t tries = 0;; ++tries) {
                if (!fits(before, bytes))
                    return false;
                if (live_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed))
                    break;
                if (tries == 0)
                    meetings_.fetch_add(1, std::memory_order_relaxed);
            }
        }
        raise(live_peak_, before + bytes + charged());
        return true;
    }
    [[nodiscard]] bool take_from_share(Shard& shard, uint64_t bytes) {
        uint64_t has = shard.share.load(std::memory_order_relaxed);
        while (has >= bytes)
            if (shard.share.compare_exchange_weak(has, has - bytes, std::memory_order_relaxed))
                return true;
        if (take(bytes + share_bytes)) {
            shard.share.fetch_add(share_bytes, std::memory_order_relaxed);
            return true;
        }
        return take(bytes) || (gather() && take(bytes));
    }
    void give_back(Shard& shard, uint64_t bytes) {
        uint64_t has = shard.share.load(std::memory_order_relaxed);
        while (has >= bytes)
            if (shard.share.compare_exchange_weak(has, has - bytes, std::memory_order_relaxed)) {
                live_.fetch_sub(bytes, std::memory_order_relaxed);
                return;
            }
    }
    // Subtracts all shares from the live bytes, before a request is refused. False when there are none.
    [[nodiscard]] bool gather() {
        uint64_t bytes = 0;
        for (Shard& shard : shards_)
            bytes += has_shares() ? shard.share.exchange(0, std::memory_order_relaxed) : 0;
        live_.fetch_sub(bytes, std::memory_order_relaxed);
        return bytes != 0;
    }

    const bool locked_;
    std::atomic<uint32_t> meetings_{0};  // how often threads have collided at live_
    Count limit_;
    Count live_{0};  // includes the shares
    Count live_peak_{0};
    Count deferred_{0};
    Count charged_{0};
    Count deferred_blocks_{0};
    Count reserved_{0};
    Count reserved_peak_{0};
    Count reserves_{0};
    Count retries_{0};
    Count out_of_memory_{0};
    std::array<Shard, shard_count> shards_;
};

}  // namespace polder::memory
