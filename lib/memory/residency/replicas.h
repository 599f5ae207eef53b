// Replicas: where one storage has memory, in all spaces.
//
// A replica is contiguous memory in one space for a range of the storage. Most storages have one replica per space, for all of their
// bytes. A storage that is used only through sub-buffers and maps has a replica for each range in use. The replicas of one space never
// overlap, so that every byte has at most one place there. A command gets one address for each range that it
// uses, so the range must lie within one replica. Where it does not, `Growth` describes the larger replica that replaces the
// overlapping ones.
//
// In host memory, several ranges may lie in one reserved stretch of addresses (sparse.h): their replicas have the same base,
// and neighbours become one.
//
// A sorted array, searched in order while it is short and by halving when it is long. Values; not thread-safe:
// guarded by the storage's lock.
#pragma once

#include <base/small_vector.h>
#include <memory/lease.h>

#include <algorithm>
#include <optional>
#include <polder/types.h>

namespace polder::memory {

struct Replica {
    SpaceId space;
    uint32_t growths = 0;  // how often it has become larger
    ByteRange range;  // of the storage
    // Where byte 0 of the storage would be: the address of range.begin, less range.begin, modulo 2^64.
    DeviceAddress base;
    std::optional<Block> block;  // none: the application's memory, or a part of a reserved stretch
    uint64_t last_use = 0;  // as Shortage::next_use; 0 before memory was short
};

// What a replica has to cover so that a range becomes contiguous.
struct Growth {
    ByteRange range;
    uint32_t growths = 0;
};

class Replicas {
public:
    [[nodiscard]] bool empty() const { return list_.empty(); }
    [[nodiscard]] uint32_t size() const { return list_.size(); }
    [[nodiscard]] const Replica* begin() const { return list_.begin(); }
    [[nodiscard]] const Replica* end() const { return list_.end(); }

    // The replica that contains all of `range`; null when there is none.
    [[nodiscard]] const Replica* find(SpaceId space, ByteRange range) const {
        for (const Replica* known = first_from(space, range.begin); known != end() && known->space == space; ++known) {
            if (known->range.contains(range))
                return known;
            if (known->range.begin > range.begin)
                break;
        }
        return nullptr;
    }
    // Calls f(const Replica&) for those of `space` that overlap `range`, in order.
    template <class F>
    void visit(SpaceId space, ByteRange range, F&& f) const {
        for (const Replica* known = first_from(space, range.begin);
             known != end() && known->space == space && known->range.begin < range.end; ++known)
            if (known->range.overlaps(range))
                f(*known);
    }
    // One of those in `space`; null when there is none.
    [[nodiscard]] const Replica* any_of(SpaceId space) const {
        const Replica* const found = lower_bound(space, 0);
        return found != end() && found->space == space ? found : nullptr;
    }
    [[nodiscard]] uint64_t bytes(SpaceId space) const {
        uint64_t sum = 0;
        for (const Replica& known : list_)
            sum += known.space == space ? known.range.size() : 0;
        return sum;
    }

    // The replica that makes `range` contiguous in `space`; nothing when it is. Whatever overlaps it becomes a part
    // of it. A replica that grows again and again doubles, so that the bytes that are copied stay in proportion. Its ends
    // are multiples of `step`, or the storage's.
    [[nodiscard]] std::optional<Growth> growth(SpaceId space, ByteRange range, ByteCount storage, Alignment step) const;

    // Afterwards `count` calls of insert allocate nothing.
    void make_room(uint32_t count) { list_.reserve(list_.size() + count); }
    // Overlaps no other replica of its space. Neighbours without a block and with the same base become one.
    void insert(const Replica& replica) noexcept;
    // Notes a use of `range`, which is found in `space`.
    void note_use(SpaceId space, ByteRange range, uint64_t number) noexcept {
        const_cast<Replica*>(find(space, range))->last_use = number;
    }
    // The last one in the list, which is not empty.
    [[nodiscard]] const Replica& last() const { return list_.end()[-1]; }
    void remove_last() noexcept { list_.resize_down(list_.size() - 1); }
    // The replica of `space` that begins at `begin`.
    void erase(SpaceId space, uint64_t begin) noexcept;

    [[nodiscard]] bool validate() const;

private:
    static constexpr uint32_t few = 8;

    [[nodiscard]] static bool is_before(const Replica& known, SpaceId space, uint64_t begin) {
        return known.space != space ? known.space < space : known.range.begin < begin;
    }
    [[nodiscard]] const Replica* lower_bound(SpaceId space, uint64_t begin) const {
        return std::partition_point(list_.begin(), list_.end(),
                                    [&](const Replica& known) { return is_before(known, space, begin); });
    }
    // The first replica of `space` that may contain `offset`, or one behind it.
    [[nodiscard]] const Replica* first_from(SpaceId space, uint64_t offset) const {
        const Replica* known = list_.begin();
        if (list_.size() <= few) [[likely]] {
            while (known != list_.end() && (known->space != space || known->range.end <= offset))
                ++known;
            return known;
        }
        known = lower_bound(space, offset + 1);
        return known != list_.begin() && (known - 1)->space == space ? known - 1 : known;
    }

    SmallVector<Replica, 1> list_;  // by space and range
};

}  // namespace polder::memory
