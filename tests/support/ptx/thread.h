// One thread of a block: its registers, its local memory, its calls, and what it waits for.
//
// A thread executes until it ends, fails, waits for others, or has executed as many instructions as it may (block.h). Only the
// thread of the host that executes the block uses it.
#pragma once

#include "memory.h"

#include <array>
#include <cstring>
#include <string>

namespace polder::ptx {

struct BlockState;

class Thread {
public:
    enum class State : uint8_t {
        ready,
        at_barrier,  // bar.sync, barrier.sync
        at_warp_operation,  // a .sync instruction, which names its members
        at_convergence,  // activemask
        ended,
    };
    struct Frame {
        const Function* function;
        const Instruction* back;  // the call; null in the entry
        uint64_t slots_begin;
        uint32_t local_begin;
    };

    void begin(BlockState& block, const Function& kernel, uint32_t linear, std::array<uint32_t, 3> id);

    // At most `budget` instructions; returns how many.
    uint64_t run(uint64_t budget);

    template <class T>
    [[nodiscard]] T get(uint32_t slot) const {
        T value;
        std::memcpy(&value, r + slot, sizeof value);
        return value;
    }
    // Signed values are extended, so that they may be stored in a wider register.
    template <class T>
    void set(uint32_t slot, T value) {
        if constexpr (std::is_integral_v<T>) {
            r[slot] = static_cast<uint64_t>(static_cast<int64_t>(value));
        } else {
            uint64_t bits = 0;
            std::memcpy(&bits, &value, sizeof value);
            r[slot] = bits;
        }
    }

    // Null after a fault.
    [[nodiscard]] std::byte* pointer(Space space, uint64_t address, uint64_t bytes, Access access);
    [[nodiscard]] std::byte* global_pointer(uint64_t address, uint64_t bytes, Access access) {
        if (address - near_.begin < near_.end - near_.begin && near_.end - address >= bytes &&
            (near_.is_writable || access == Access::read) && address % bytes == 0) [[likely]]
            return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
        return other_global_pointer(address, bytes, access);
    }
    // The launch fails. Always false, as an instruction returns it.
    bool fail(Fault fault, const std::string& what);

    bool call(const Function& callee, const Call& site);
    bool call_indirect(const IndirectCall& site, uint64_t address);
    bool leave();

    // Whether this thread is farther behind than `other`: of two threads of a warp, the one that is farther behind in the program is executed first, so that they meet again.
    [[nodiscard]] bool is_behind(const Thread& other) const;
    [[nodiscard]] bool is_at_same_place(const Thread& other) const;

    uint64_t* r = nullptr;  // the slots of the current frame
    const Instruction* pc = nullptr;
    BlockState* block = nullptr;
    State state = State::ended;
    bool carry = false;
    uint32_t linear = 0;
    std::array<uint32_t, 3> id{};
    // The operands of a waiting thread; the meaning depends on the instruction.
    uint32_t members = 0;
    uint32_t barrier = 0;
    uint32_t barrier_threads = 0;
    const Instruction* waits_at = nullptr;

private:
    std::byte* other_global_pointer(uint64_t address, uint64_t bytes, Access access);
    std::byte* within(std::byte* begin, uint64_t size, uint64_t offset, uint64_t bytes, const char* what);
    bool enter(const Function& callee);
    [[nodiscard]] const Instruction* place(size_t depth) const {
        return depth + 1 < frames_.size() ? frames_[depth + 1].back : pc;
    }

    Range near_{};  // the global range that was used last
    std::vector<Frame> frames_;
    std::vector<uint64_t> slots_;
    std::vector<std::byte> local_;
    uint32_t local_used_ = 0;
};

}  // namespace polder::ptx
