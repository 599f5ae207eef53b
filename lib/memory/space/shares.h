// Shares: divides a full memory among the contexts that request memory there, for one search for victims.
//
// The contexts that request memory (have had recent turns, fair_turns.h) have equal shares. The memory of a context that is within its share is
// evicted for other contexts only when nothing else can be evicted. So a context cannot get more than its share at the expense of other requesting
// contexts, no matter how many threads it has or how much it enqueues. For a context within its share, memory of contexts above their shares is
// evicted first. A context that does not request memory has no share: its memory is evicted like that of the requesting context itself. When only
// one context requests memory, nothing is divided.
// One thread. Sizes are bytes. Finding a context is linear, because there are few.
#pragma once

#include <base/small_vector.h>

#include <cstdint>

namespace polder::memory {

class Shares {
public:
    // Candidates of a smaller order are evicted first.
    enum class Order : uint8_t { above_share, ordinary, within_share };

    // `asking` is the context that searches. Its command will use `bytes`.
    Shares(const void* asking, uint64_t bytes) : asking_(asking) { parts_.push_back({asking, bytes, true}); }

    // Adds memory that the context `owner` has. asks() is called once for each owner and returns whether it requests memory.
    template <class Asks>
    void add(const void* owner, uint64_t bytes, Asks&& asks) {
        for (Part& part : parts_)
            if (part.owner == owner) {
                part.bytes += bytes;
                return;
            }
        parts_.push_back({owner, bytes, asks()});
    }
    void divide(uint64_t memory_bytes) {
        uint64_t asking = 0;
        for (const Part& part : parts_)
            asking += part.asks ? 1 : 0;
        share_ = memory_bytes / asking;
        is_divided_ = asking > 1;
    }

    [[nodiscard]] Order order_of(const void* owner) const {
        if (!is_divided_ || owner == asking_)
            return Order::ordinary;
        for (const Part& part : parts_)
            if (part.owner == owner && part.asks)
                return part.bytes <= share_ ? Order::within_share
                                            : (asking_is_within() ? Order::above_share : Order::ordinary);
        return Order::ordinary;
    }
    // Whether memory of `owner` may be evicted for commands of all contexts, so that it may be planned.
    [[nodiscard]] bool may_be_planned(const void* owner) const {
        return order_of(owner) != Order::within_share && (!is_divided_ || owner != asking_ || !asking_is_within());
    }

private:
    struct Part {
        const void* owner = nullptr;
        uint64_t bytes = 0;
        bool asks = false;
    };
    [[nodiscard]] bool asking_is_within() const { return parts_[0].bytes <= share_; }

    const void* const asking_;
    SmallVector<Part, 4> parts_;  // the first one is the asking context's
    uint64_t share_ = 0;
    bool is_divided_ = false;
};

}  // namespace polder::memory
