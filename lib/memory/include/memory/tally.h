// Tally: the statistics of one allocator, and its limit. Any thread; no lock.
//
// A block's bytes move from live to deferred to free. Each move adds before it subtracts, so that the bytes in use are never
// counted too low and the limit holds while several threads allocate.
#pragma once

#include <memory/allocator.h>

#include <algorithm>
#include <atomic>

namespace polder::memory {

class Tally {
public:
    explicit Tally(ByteCount limit) : limit_(limit.value) {}

    void set_limit(ByteCount limit) { limit_.store(limit.value, std::memory_order_relaxed); }
    [[nodiscard]] uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool allows(uint64_t bytes) const {
        const uint64_t most = limit();
        const uint64_t held = live() + deferred() + charged();
        return bytes <= most && held <= most - bytes;
    }

    // --- a block's life ---
    // False when the limit does not allow it.
    [[nodiscard]] bool allocate(uint64_t bytes) {
        uint64_t before = live();
        do {
            const uint64_t most = limit();
            if (bytes > most || before + deferred() + charged() > most - bytes)
                return false;
        } while (!live_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
        allocations_.fetch_add(1, std::memory_order_relaxed);
        raise(live_peak_, before + bytes);
        return true;
    }
    void free(uint64_t bytes) {
        frees_.fetch_add(1, std::memory_order_relaxed);
        live_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    // Free for its owner, while commands in flight use it.
    void defer(uint64_t bytes) {
        deferred_.fetch_add(bytes, std::memory_order_relaxed);
        deferred_blocks_.fetch_add(1, std::memory_order_relaxed);
        free(bytes);
    }
    void end_deferred(uint64_t bytes) {
        deferred_blocks_.fetch_sub(1, std::memory_order_relaxed);
        deferred_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    // A deferred block is in use again, which the limit already counts.
    void reuse_deferred(uint64_t bytes) {
        allocations_.fetch_add(1, std::memory_order_relaxed);
        raise(live_peak_, live_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
        end_deferred(bytes);
    }

    // Memory that is used without a block. False when the limit does not allow it.
    [[nodiscard]] bool charge(uint64_t bytes) {
        uint64_t before = charged();
        do {
            const uint64_t most = limit();
            if (bytes > most || before + live() + deferred() > most - bytes)
                return false;
        } while (!charged_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
        return true;
    }
    void discharge(uint64_t bytes) { charged_.fetch_sub(bytes, std::memory_order_relaxed); }
    [[nodiscard]] uint64_t charged() const { return charged_.load(std::memory_order_relaxed); }

    // --- memory of the source ---
    void reserve(uint64_t bytes) {
        reserves_.fetch_add(1, std::memory_order_relaxed);
        raise(reserved_peak_, reserved_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
    }
    void release(uint64_t bytes) { reserved_.fetch_sub(bytes, std::memory_order_relaxed); }

    void count_retry() { retries_.fetch_add(1, std::memory_order_relaxed); }
    void count_out_of_memory() { out_of_memory_.fetch_add(1, std::memory_order_relaxed); }
    void reset_peak(Allocator::Peak peak) {
        if (peak == Allocator::Peak::live)
            live_peak_.store(live(), std::memory_order_relaxed);
        else
            reserved_peak_.store(reserved(), std::memory_order_relaxed);
    }

    [[nodiscard]] uint64_t live() const { return live_.load(std::memory_order_relaxed); }
    [[nodiscard]] uint64_t deferred() const { return deferred_.load(std::memory_order_relaxed); }
    [[nodiscard]] uint64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }
    [[nodiscard]] uint64_t live_blocks() const {
        const uint64_t frees = frees_.load(std::memory_order_relaxed);
        return std::max(allocations_.load(std::memory_order_relaxed), frees) - frees;
    }
    [[nodiscard]] uint64_t free_bytes() const {
        const uint64_t all = reserved();
        return all - std::min(all, live() + deferred());
    }
    void fill(Allocator::Statistics& statistics) const {
        const auto value = [](const std::atomic<uint64_t>& count) { return count.load(std::memory_order_relaxed); };
        statistics.reserved = ByteCount{reserved()};
        statistics.reserved_peak = ByteCount{value(reserved_peak_)};
        statistics.live = ByteCount{live() + charged()};
        statistics.live_peak = ByteCount{value(live_peak_)};
        statistics.deferred = ByteCount{deferred()};
        statistics.free = ByteCount{free_bytes()};
        statistics.frees = value(frees_);
        statistics.allocations = std::max(value(allocations_), statistics.frees);
        statistics.live_blocks = statistics.allocations - statistics.frees;
        statistics.deferred_blocks = value(deferred_blocks_);
        statistics.retries = value(retries_);
        statistics.out_of_memory = value(out_of_memory_);
        statistics.hits = statistics.allocations - std::min(statistics.allocations, value(reserves_));
    }

private:
    static void raise(std::atomic<uint64_t>& peak, uint64_t value) {
        uint64_t known = peak.load(std::memory_order_relaxed);
        while (known < value && !peak.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
        }
    }

    std::atomic<uint64_t> limit_;
    std::atomic<uint64_t> live_{0};
    std::atomic<uint64_t> live_peak_{0};
    std::atomic<uint64_t> deferred_{0};
    std::atomic<uint64_t> charged_{0};
    std::atomic<uint64_t> deferred_blocks_{0};
    std::atomic<uint64_t> reserved_{0};
    std::atomic<uint64_t> reserved_peak_{0};
    std::atomic<uint64_t> reserves_{0};
    std::atomic<uint64_t> allocations_{0};
    std::atomic<uint64_t> frees_{0};
    std::atomic<uint64_t> retries_{0};
    std::atomic<uint64_t> out_of_memory_{0};
};

}  // namespace polder::memory
