#include "replicas.h"

namespace polder::memory {
namespace {

// A replica grows this often to the size that is needed; afterwards it doubles when it grows.
constexpr uint32_t exact_growths = 4;

uint64_t round_down(uint64_t offset, Alignment step) { return offset & ~(step.value - 1); }

ByteRange rounded(ByteRange range, uint64_t size, Alignment step) {
    const uint64_t end = step.round_up(range.end);
    return {round_down(range.begin, step), end < range.end ? size : std::min(end, size)};
}

} // namespace

std::optional<Growth> Replicas::growth(SpaceId space, ByteRange range, ByteCount storage, Alignment step) const {
    if (find(space, range))
        return std::nullopt;
    Growth result{rounded(range, storage.value, step), 0};
    const ByteRange wanted = result.range;
    ByteRange known_part{storage.value, storage.value};  // from the first overlapping replica to the last one
    for (ByteRange before{0, 0}; !(before == result.range);) {
        before = result.range;
        visit(space, before, [&](const Replica& known) {
            result.growths = std::max(result.growths, known.growths + 1);
            const uint64_t first = std::min(known_part.begin, known.range.begin);
            const uint64_t end = known_part.empty() ? known.range.end : std::max(known_part.end, known.range.end);
            known_part = {first, end};
            result.range = {std::min(result.range.begin, known.range.begin),
                            std::max(result.range.end, known.range.end)};
        });
    }
    if (result.growths <= exact_growths)
        return result;
    // Doubles towards the side where the replica was too small.
    const uint64_t more = result.range.size();
    const bool downwards = wanted.begin < known_part.begin;
    const bool upwards = wanted.end > known_part.end;
    const uint64_t begin = downwards ? result.range.begin - std::min(result.range.begin, more) : result.range.begin;
    const uint64_t end = upwards ? std::min(storage.value, result.range.end + more) : result.range.end;
    result.range = rounded({begin, end}, storage.value, step);
    visit(space, result.range, [&](const Replica& known) {
        result.range = {std::min(result.range.begin, known.range.begin), std::max(result.range.end, known.range.end)};
    });
    return result;
}

void Replicas::insert_sorted(const Replica& replica) noexcept {
    const auto index = static_cast<size_t>(lower_bound(replica.space, replica.range.begin) - list_.begin());
    const auto joins = [&](const Replica& known, const Replica& next) {
        return known.space == next.space && !known.block && !next.block && known.base == next.base &&
               known.range.end == next.range.begin;
    };
    if (index > 0 && joins(list_[index - 1], replica)) {
        Replica joined = list_[index - 1];
        joined.range.end = replica.range.end;
        erase(joined.space, joined.range.begin);
        insert(joined);
        return;
    }
    if (index < list_.size() && joins(replica, list_[index])) {
        list_[index].range.begin = replica.range.begin;
        return;
    }
    list_.push_back(replica);
    std::rotate(list_.begin() + index, list_.end() - 1, list_.end());
}

void Replicas::erase(SpaceId space, uint64_t begin) noexcept {
    const auto index = static_cast<size_t>(lower_bound(space, begin) - list_.begin());
    assert(index < list_.size() && list_[index].space == space && list_[index].range.begin == begin);
    std::copy(list_.begin() + index + 1, list_.end(), list_.begin() + index);
    list_.resize_down(list_.size() - 1);
}

bool Replicas::validate() const {
    for (uint32_t i = 0; i < list_.size(); ++i) {
        if (list_[i].range.empty())
            return false;
        if (i > 0 && (list_[i].space < list_[i - 1].space ||
                      (list_[i].space == list_[i - 1].space && list_[i].range.begin < list_[i - 1].range.end)))
            return false;
    }
    return true;
}

} // namespace polder::memory
