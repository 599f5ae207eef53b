// What the sub-group statements of random kernels do: as OpenCL C on lib/kernel's intrinsics, and in the interpreter.
#pragma once

#include "workgroup_random_program.h"

#include <algorithm>

namespace polder::compiler::workgroup::test {

// One function for each SubGroupFunction, in order.
inline constexpr const char* sub_group_helpers = R"(
#define TOGETHER __attribute__((const, convergent))
uint _polder_sub_group_lane(void) __attribute__((const));
uint _polder_sub_group_number(void) __attribute__((const));
uint _polder_sub_group_width(void) __attribute__((const));
ulong _polder_sub_group_ballot(uint) TOGETHER;
uint _polder_sub_group_shuffle_32(uint x, uint id) TOGETHER;
uint _polder_sub_group_reduce_add_uint(uint x) TOGETHER;
uint _polder_sub_group_reduce_mul_uint(uint x) TOGETHER;
int _polder_sub_group_reduce_max_int(int x) TOGETHER;
uint _polder_sub_group_reduce_xor_uint(uint x) TOGETHER;
uint _polder_sub_group_inclusive_add_uint(uint x) TOGETHER;
uint _polder_sub_group_exclusive_add_uint(uint x) TOGETHER;
uint _polder_sub_group_exclusive_min_uint(uint x) TOGETHER;
uint _polder_sub_group_clustered_add_uint(uint x, uint size) TOGETHER;
ushort _polder_sub_group_clustered_max_ushort(ushort x, uint size) TOGETHER;
void _polder_sub_group_sync(void) __attribute__((convergent));
#define FUNCTION(NUMBER) uint sub_group_##NUMBER(local uint* s, uint x, uint y)
// The number of an active lane, or 5.
uint from(uint x, uint id) {
    uint y = _polder_sub_group_shuffle_32(x, id);
    return (_polder_sub_group_ballot(1) >> id) & 1 ? y : 5;
}
FUNCTION(0) { return _polder_sub_group_reduce_add_uint(x); }
FUNCTION(1) { return _polder_sub_group_reduce_mul_uint(x | 1); }
FUNCTION(2) { return (uint)_polder_sub_group_reduce_max_int((int)x); }
FUNCTION(3) { return _polder_sub_group_reduce_xor_uint(x); }
FUNCTION(4) { return _polder_sub_group_inclusive_add_uint(x); }
FUNCTION(5) { return _polder_sub_group_exclusive_add_uint(x); }
FUNCTION(6) { return _polder_sub_group_exclusive_min_uint(x); }
FUNCTION(7) { return _polder_sub_group_clustered_add_uint(x, 4); }
FUNCTION(8) { return _polder_sub_group_clustered_max_ushort((ushort)x, 2); }
FUNCTION(9) { return from(x, y & (_polder_sub_group_width() - 1)); }
FUNCTION(10) { return from(x, (_polder_sub_group_lane() + 3) & (_polder_sub_group_width() - 1)); }
FUNCTION(11) { return from(x, (uint)ctz(_polder_sub_group_ballot(1))); }
FUNCTION(12) { return (uint)_polder_sub_group_ballot(x & 1) ^ (uint)(_polder_sub_group_ballot(x & 1) >> 32); }
FUNCTION(13) { return _polder_sub_group_lane(); }
FUNCTION(14) { return _polder_sub_group_number(); }
FUNCTION(15) {
    uint lane = _polder_sub_group_lane(), width = _polder_sub_group_width();
    uint next = (lane + 1) & (width - 1);
    local uint* own = s + 512 + _polder_sub_group_number() * width;
    own[lane] = x;
    _polder_sub_group_sync();
    uint result = (_polder_sub_group_ballot(1) >> next) & 1 ? own[next] : 5;
    _polder_sub_group_sync();
    return result;
}
)";

// The result of work-item `lane` of the sub-group that begins at `first`; x and y: the arguments of each work-item.
inline uint32_t combined(SubGroupFunction function, size_t first, size_t lane, const std::vector<bool>& is_active,
                         const std::vector<uint32_t>& x, const std::vector<uint32_t>& y) {
    const auto fold = [&](uint32_t from, size_t begin, size_t end, auto combine_two) {
        for (size_t i = begin; i < end; ++i)
            if (is_active[i])
                from = combine_two(from, x[i]);
        return from;
    };
    const auto add = [](uint32_t a, uint32_t b) { return a + b; };
    const auto of = [&](size_t i) { return is_active[i] ? x[i] : 5; };
    const size_t size = x.size();
    switch (function) {
    case SubGroupFunction::sum: return fold(0, 0, size, add);
    case SubGroupFunction::product: return fold(1, 0, size, [](uint32_t a, uint32_t b) { return a * (b | 1); });
    case SubGroupFunction::largest:
        return fold(0x80000000U, 0, size,
                    [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? b : a; });
    case SubGroupFunction::exclusive_or: return fold(0, 0, size, [](uint32_t a, uint32_t b) { return a ^ b; });
    case SubGroupFunction::sum_so_far: return fold(0, 0, lane + 1, add);
    case SubGroupFunction::sum_before: return fold(0, 0, lane, add);
    case SubGroupFunction::least_before:
        return fold(~0U, 0, lane, [](uint32_t a, uint32_t b) { return std::min(a, b); });
    case SubGroupFunction::sum_of_four: return fold(0, lane / 4 * 4, lane / 4 * 4 + 4, add);
    case SubGroupFunction::largest_of_two:
        return fold(0, lane / 2 * 2, lane / 2 * 2 + 2, [](uint32_t a, uint32_t b) { return std::max(a, b & 0xffff); });
    case SubGroupFunction::other_lane: return of(y[lane] % size);
    case SubGroupFunction::shifted_lane: return of((lane + 3) % size);
    case SubGroupFunction::first_lane:
        return of(static_cast<size_t>(std::find(is_active.begin(), is_active.end(), true) - is_active.begin()));
    case SubGroupFunction::ballot: {
        uint32_t bits = 0;
        for (size_t i = 0; i < size; ++i)
            bits ^= is_active[i] ? (x[i] & 1) << (i % 32) : 0;
        return bits;
    }
    case SubGroupFunction::lane: return static_cast<uint32_t>(lane);
    case SubGroupFunction::number: return static_cast<uint32_t>(first / size);
    case SubGroupFunction::neighbour_in_memory: return of((lane + 1) % size);
    case SubGroupFunction::count: break;
    }
    return 0;
}

}  // namespace polder::compiler::workgroup::test
