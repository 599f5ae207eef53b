// Replicas: the list of the memory that one storage has in all spaces.
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
// A sorted array with linear search while it is short and binary search when it is long. Not thread-safe:
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
    uint32_t growths = 0;  // how often it was replaced by a larger one
    ByteRange range;  // the range of the storage
    // The address that byte 0 of the storage would have: the address of range.begin minus range.begin, modulo 2^64.
    DeviceAddress base;
    std::optional<Block> block;  // none: the application's memory, or a part of a reserved stretch
    uint64_t last_use = 0;  // a number of Shortage::next_use; 0 before the memory was first full
};

// The range that a new replica has to cover so that a requested range becomes contiguous.
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
    // Calls f(const Replica&) for the replicas in `space` that overlap `range`, in order.
    template <class F>
    void visit(SpaceId space, ByteRange range, F&& f) const {
        for (const Replica* known = first_from(space, range.begin);
             known != end() && known->space == space && known->range.begin < range.end; ++known)
            if (known->range.overlaps(range))
                f(*known);
    }
    // Any replica in `space`; null when there is none.
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

    // The new replica that makes `range` contiguous in `space`; std::nullopt when `range` is contiguous there. It contains all replicas that
    // overlap it. A replica that grows often doubles, so that the number of copied bytes is proportional to the size. Its ends
    // are multiples of `step`, or ends of the storage.
    [[nodiscard]] std::optional<Growth> growth(SpaceId space, ByteRange range, ByteCount storage, Alignment step) const;

    // Afterwards, `count` calls of insert allocate no memory.
    void make_room(uint32_t count) { list_.reserve(list_.size() + count); }
    // Inserts a replica that overlaps no other one of its space. Joins it with neighbours that have no block and the same base.
    void insert(const Replica& replica) noexcept {
        if (list_.empty()) [[likely]]
            list_.push_back(replica);  // make_room was called
        else
            insert_sorted(replica);
    }
    // Notes a use of `range`, which must lie within one replica of `space`.
    void note_use(SpaceId space, ByteRange range, uint64_t number) noexcept {
        const_cast<Replica*>(find(space, range))->last_use = number;
    }
    // The last replica in the list, which must not be empty.
    [[nodiscard]] const Replica& last() const { return list_.end()[-1]; }
    void remove_last() noexcept { list_.resize_down(list_.size() - 1); }
    // Removes the replica of `space` that begins at `begin`.
    void erase(SpaceId space, uint64_t begin) noexcept;

    [[nodiscard]] bool validate() const;

private:
    static constexpr uint32_t few = 8;
    void insert_sorted(const Replica& replica) noexcept;

    [[nodiscard]] static bool is_before(const Replica& known, SpaceId space, uint64_t begin) {
        return known.space != space ? known.space < space : known.range.begin < begin;
    }
    [[nodiscard]] const Replica* lower_bound(SpaceId space, uint64_t begin) const {
        return std::partition_point(list_.begin(), list_.end(),
                                    [&](const Replica& known) { return is_before(known, space, begin); });
    }
    // The first replica of `space` that may contain `offset`, or a replica after it.
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
