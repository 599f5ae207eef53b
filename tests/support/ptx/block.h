// A block of threads, executed by one thread of the host.
//
// Each thread of the block has a program counter of its own and is executed until it waits, as processors since Volta do it: a thread that
// waits for another one of its warp, in a spin lock for example, does not keep it from going on. The .sync
// instructions of a warp wait until all threads that their mask names have come; one that never comes is an error of the
// program, and is reported as one. `activemask` returns the threads of the warp that have come to the same place when none of the others
// can go on; the threads that are farthest behind in the program are released first.
#pragma once

#include "thread.h"

#include <array>

namespace polder::ptx {

struct Launch {
    const Function* kernel = nullptr;
    std::array<uint32_t, 3> grid{1, 1, 1};
    std::array<uint32_t, 3> block{1, 1, 1};
    uint64_t shared_bytes = 0;  // static and dynamic
    uint64_t dynamic_bytes = 0;
    std::span<const std::byte> parameters;
    std::span<const Range> memory;  // merged
    std::span<const Function* const> functions;  // by number, for calls through addresses
};

// What all threads of a block see.
struct BlockState {
    const Launch* launch = nullptr;
    std::array<uint32_t, 3> id{};
    std::vector<std::byte> shared;
    Fault fault = Fault::none;
    std::string what;
};

class Block {
public:
    explicit Block(const Launch& launch);
    // Executes the block `id` of the grid. False after a fault.
    [[nodiscard]] bool run(std::array<uint32_t, 3> id);
    [[nodiscard]] const BlockState& state() const { return state_; }
    [[nodiscard]] uint64_t instructions() const { return instructions_; }

private:
    [[nodiscard]] bool run_warp(std::span<Thread> warp, uint32_t& waits);
    // True when threads go on.
    bool release_members(std::span<Thread> warp);
    bool release_converged(std::span<Thread> warp);
    bool release_barriers();
    void release_barrier(uint32_t number);
    bool has_come(std::span<Thread> warp, const Thread& first);
    void report_deadlock();

    BlockState state_;
    std::vector<Thread> threads_;
    std::vector<uint32_t> waits_;  // of each warp: how often threads that may have met waited for those that execute
    uint64_t instructions_ = 0;
};

}  // namespace polder::ptx
