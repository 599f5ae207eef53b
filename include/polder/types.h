// Strong types shared by every layer: sizes, ranges, addresses, ids, versions.
//
// Units are bytes and nanoseconds. All types are trivially copyable values without
// invariants beyond what their constructors assert, and may be used from any thread.
#pragma once

#include <bit>
#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace polder {

// A number of bytes. Arithmetic is explicit: use `.value`, check for overflow, make a new ByteCount.
struct ByteCount {
    uint64_t value = 0;

    constexpr ByteCount() = default;
    constexpr explicit ByteCount(uint64_t bytes) : value(bytes) {}
    friend constexpr auto operator<=>(ByteCount, ByteCount) = default;
};

// Half-open range [begin, end) of bytes within a storage, a block or a region.
struct ByteRange {
    uint64_t begin = 0;
    uint64_t end = 0;

    constexpr ByteRange() = default;
    constexpr ByteRange(uint64_t first, uint64_t past_last) : begin(first), end(past_last) {
        assert(first <= past_last);
    }
    static constexpr ByteRange at(uint64_t offset, ByteCount size) { return {offset, offset + size.value}; }

    [[nodiscard]] constexpr uint64_t size() const { return end - begin; }
    [[nodiscard]] constexpr bool empty() const { return begin == end; }
    [[nodiscard]] constexpr bool contains(ByteRange other) const { return begin <= other.begin && other.end <= end; }
    [[nodiscard]] constexpr bool overlaps(ByteRange other) const { return begin < other.end && other.begin < end; }
    // The common part; empty (at an unspecified position) when the ranges do not overlap.
    [[nodiscard]] constexpr ByteRange intersect(ByteRange other) const {
        const uint64_t low = begin > other.begin ? begin : other.begin;
        const uint64_t high = end < other.end ? end : other.end;
        return low < high ? ByteRange{low, high} : ByteRange{low, low};
    }
    friend constexpr bool operator==(ByteRange, ByteRange) = default;
};

// A power-of-two alignment in bytes.
struct Alignment {
    uint64_t value = 1;

    constexpr Alignment() = default;
    constexpr explicit Alignment(uint64_t bytes) : value(bytes) { assert(std::has_single_bit(bytes)); }
    [[nodiscard]] constexpr uint64_t round_up(uint64_t offset) const { return (offset + value - 1) & ~(value - 1); }
    [[nodiscard]] constexpr bool divides(uint64_t offset) const { return (offset & (value - 1)) == 0; }
    friend constexpr auto operator<=>(Alignment, Alignment) = default;
};

// An address in the address space of one device. In memory space 0 it is a host pointer;
// in every other space only the driver of that space can access the memory at the address.
struct DeviceAddress {
    uint64_t value = 0;

    constexpr DeviceAddress() = default;
    constexpr explicit DeviceAddress(uint64_t address) : value(address) {}
    static DeviceAddress of(const void* host) { return DeviceAddress{reinterpret_cast<uintptr_t>(host)}; }
    [[nodiscard]] constexpr DeviceAddress plus(uint64_t offset) const { return DeviceAddress{value + offset}; }
    // Only for addresses of memory space 0.
    [[nodiscard]] std::byte* host() const { return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(value)); }
    friend constexpr auto operator<=>(DeviceAddress, DeviceAddress) = default;
};

// A physically distinct memory. Space 0 is host memory, in every process. The platform numbers
// the others densely as it opens devices; at most `max_spaces` exist in one process.
struct SpaceId {
    static constexpr uint32_t max_spaces = 64;
    uint32_t value = 0;

    constexpr SpaceId() = default;
    constexpr explicit SpaceId(uint32_t index) : value(index) { assert(index < max_spaces); }
    [[nodiscard]] constexpr bool is_host() const { return value == 0; }
    friend constexpr auto operator<=>(SpaceId, SpaceId) = default;
};
inline constexpr SpaceId host_space{0};

// A set of memory spaces, one bit each.
struct SpaceSet {
    uint64_t bits = 0;

    constexpr SpaceSet() = default;
    constexpr explicit SpaceSet(SpaceId only) : bits(uint64_t{1} << only.value) {}
    [[nodiscard]] constexpr bool contains(SpaceId space) const { return (bits >> space.value) & 1; }
    [[nodiscard]] constexpr bool empty() const { return bits == 0; }
    [[nodiscard]] constexpr int count() const { return std::popcount(bits); }
    [[nodiscard]] constexpr SpaceId first() const {
        assert(bits != 0);
        return SpaceId{static_cast<uint32_t>(std::countr_zero(bits))};
    }
    constexpr void insert(SpaceId space) { bits |= uint64_t{1} << space.value; }
    constexpr void erase(SpaceId space) { bits &= ~(uint64_t{1} << space.value); }
    friend constexpr bool operator==(SpaceSet, SpaceSet) = default;
};

// Counts the writes that a byte range of a storage has seen; 0 means never written.
struct Version {
    uint64_t value = 0;

    constexpr Version() = default;
    constexpr explicit Version(uint64_t number) : value(number) {}
    [[nodiscard]] constexpr Version next() const { return Version{value + 1}; }
    friend constexpr auto operator<=>(Version, Version) = default;
};

// How a command uses a byte range. `overwrite` promises that every byte is written before it is
// read, so that nothing needs to be copied in.
enum class Access : uint8_t { none, read, write, read_write, overwrite };

[[nodiscard]] constexpr bool reads(Access access) {
    return access == Access::read || access == Access::write || access == Access::read_write;
}
[[nodiscard]] constexpr bool writes(Access access) {
    return access == Access::write || access == Access::read_write || access == Access::overwrite;
}

} // namespace polder

template <>
struct std::hash<polder::SpaceId> {
    size_t operator()(polder::SpaceId id) const noexcept { return id.value; }
};
