// Random kernels whose work-items access memory: indices of every integer type, with and without guards, strides, several buffers
// and element types, vectors, divergent control, barriers in uniform loops, exact floating point.
//
// A program is made once, as text and as functions that compute what the text says: an expression is its OpenCL C, the value it
// has for one work-item, and bounds of that value, so that no signed operation overflows. Work-items write places of their own, and
// read what the launch does not write, or local memory behind barriers.
#pragma once

#include "workgroup_harness.h"

#include <functional>
#include <new>
#include <random>

namespace polder::compiler::workgroup::test {

// The elements of every input buffer; a power of two.
inline constexpr int64_t memory_elements = 1024;

struct NumberType {
    const char* name;
    unsigned bits;
    bool is_signed;

    [[nodiscard]] int64_t wrap(int64_t value) const;
};

struct MemoryItem {
    std::array<uint64_t, 2> local{}, global{};
    std::array<int64_t, 6> v{};
    std::array<int64_t, 2> u{};
    std::array<float, 2> f{};
    std::array<int32_t, 4> w{};
    std::array<int32_t, 3> h{1, 2, 3};
    std::array<float, 4> g{1, 2, 3, 4};
    std::array<int64_t, 2> l{5, 6};
    std::array<int32_t, 8> p{0, 1, 2, 3, 4, 5, 6, 7};
    std::array<int64_t, 8> t{};  // counters of loops, by depth
};

// At places that are multiples of the largest vector's size.
template <class T>
struct VectorAllocator {
    using value_type = T;
    static constexpr std::align_val_t alignment{128};
    VectorAllocator() = default;
    template <class U>
    explicit VectorAllocator(const VectorAllocator<U>&) {}
    T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), alignment)); }
    void deallocate(T* place, size_t) { ::operator delete(place, alignment); }
    friend bool operator==(const VectorAllocator&, const VectorAllocator&) = default;
};
template <class T>
using Elements = std::vector<T, VectorAllocator<T>>;

// What one launch reads and writes.
struct MemoryBuffers {
    Elements<int8_t> chars;
    Elements<uint16_t> shorts;
    Elements<int32_t> ints;
    Elements<int64_t> longs;
    Elements<float> floats;
    // Written: four elements for each work-item; and one at its id plus or minus a distance.
    Elements<int32_t> out;
    Elements<uint8_t> bytes;
    Elements<int64_t> shifted;
    std::vector<uint64_t> result;

    MemoryBuffers(uint32_t seed, uint64_t items);
    friend bool operator==(const MemoryBuffers&, const MemoryBuffers&) = default;
};

struct MemoryGuard;
struct MemoryStatement;
using MemoryBlock = std::vector<std::shared_ptr<MemoryStatement>>;

class MemoryProgram {
public:
    // `used`: a part of the statements reads structures at places without a step, or vectors of which only some work-items have one. `vectors`: a part
    // computes with explicit vectors. `constant_tables`: a part of the expressions looks up elements of constant tables.
    enum class Structures : uint8_t { none, used, vectors, constant_tables };
    explicit MemoryProgram(uint32_t seed, Structures structures = Structures::none);
    ~MemoryProgram();

    // Puts all statements under one of several guards, if none of them is a barrier. Some work-items at the start or the end of a row, depending on
    // n, fail it.
    void guard(uint32_t seed);

    [[nodiscard]] std::string text(const std::string& name) const;
    // Runs all work-items of a launch.
    void run(const Range& range, int32_t n, MemoryBuffers& buffers) const;

    // Removes statements as long as `still_fails` holds for the rest.
    void minimise(const std::function<bool()>& still_fails);

private:
    MemoryBlock block_;
    const bool has_vectors_, has_tables_;
    const bool reads_constants_;  // buffers that are only read are __constant
    const MemoryGuard* guard_ = nullptr;
};

// The arguments of a kernel made by `text`.
[[nodiscard]] Arguments memory_arguments(MemoryBuffers& buffers, int32_t n);

}  // namespace polder::compiler::workgroup::test
