// Shares: how a full memory is divided among the contexts that ask for it, for one search for victims.
//
// Contexts that ask (take turns of the memory, fair_turns.h) have equal shares. What a context has within its share is not evicted for another one
// while anything else can be: so a context cannot take more than its share from those that ask too, however many threads it has and however much
// it enqueues before it waits. A context below its share takes memory from those above theirs first. A context that does not ask
// has no share: its memory is evicted like the asking context's own. With one asking context nothing is divided.
//
// One thread. Sizes are bytes. A search has few contexts: looking one up is linear.
#pragma once

#include <base/small_vector.h>

#include <cstdint>

namespace polder::memory {

class Shares {
public:
    // Smaller ones go first.
    enum class Order : uint8_t { above_share, ordinary, within_share };

    // `asking` makes the search, and will have `bytes` for its command.
    Shares(const void* asking, uint64_t bytes) : asking_(asking) { parts_.push_back({asking, bytes, true}); }

    // Memory that `owner` has; asks() is called once for each owner and returns whether it takes turns.
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
    // For other contexts' commands, too.
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
    SmallVector<Part, 4> parts_;  // the asking context's first
    uint64_t share_ = 0;
    bool is_divided_ = false;
};

}  // namespace polder::memory
