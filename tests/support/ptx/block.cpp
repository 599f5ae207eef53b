// Rounds: each warp is executed until all its threads have ended, wait at a barrier, or have used up their share of
// instructions; then barriers at which all have come are released. A round in which nothing happened is a deadlock.
#include "block.h"

#include <algorithm>
#include <thread>

namespace polder::ptx {
namespace {

constexpr uint32_t warp_size = 32;
// With this share, a thread that others wait for gets its turn soon; longer shares are not faster.
constexpr uint64_t share = 20'000;
constexpr uint32_t waits_max = 200;
// What shared memory holds at first: not zeros, so that reading it too early is seen.
constexpr std::byte unwritten{0xcd};

}  // namespace

Block::Block(const Launch& launch) {
    state_.launch = &launch;
    state_.shared.resize(launch.shared_bytes);
    threads_.resize(uint64_t{launch.block[0]} * launch.block[1] * launch.block[2]);
    waits_.resize(threads_.size() / warp_size + 1);
}

bool Block::run(std::array<uint32_t, 3> id) {
    state_.id = id;
    std::ranges::fill(state_.shared, unwritten);
    const auto& size = state_.launch->block;
    for (uint32_t i = 0; i < threads_.size(); ++i)
        threads_[i].begin(state_, *state_.launch->kernel, i,
                          {i % size[0], i / size[0] % size[1], i / size[0] / size[1]});
    for (;;) {
        const uint64_t before = instructions_;
        bool is_ended = true;
        for (size_t first = 0; first < threads_.size(); first += warp_size) {
            const std::span warp(&threads_[first], std::min<size_t>(warp_size, threads_.size() - first));
            is_ended &= run_warp(warp, waits_[first / warp_size]);
            if (state_.fault != Fault::none)
                return false;
        }
        if (is_ended)
            return true;
        const bool goes_on = release_barriers();
        if (state_.fault == Fault::none && !goes_on && instructions_ == before)
            report_deadlock();
        if (state_.fault != Fault::none)
            return false;
        // Threads that wait for what another stream or the host does.
        if (!goes_on)
            std::this_thread::yield();
    }
}

// True when all threads have ended.
bool Block::run_warp(std::span<Thread> warp, uint32_t& waits) {
    using State = Thread::State;
    for (bool goes_on = true; goes_on;) {
        for (Thread& thread : warp) {
            if (thread.state != State::ready)
                continue;
            instructions_ += thread.run(share);
            if (state_.fault != Fault::none)
                return false;
        }
        goes_on = release_members(warp);
        if (state_.fault != Fault::none)
            return false;
        // A long loop is waited for; threads that spin do not keep the others waiting for ever.
        const bool may_come = std::ranges::any_of(warp, [](const Thread& one) { return one.state == State::ready; });
        if (!goes_on && (!may_come || ++waits > waits_max)) {
            goes_on = release_converged(warp);
            waits = 0;
        }
    }
    return std::ranges::all_of(warp, [](const Thread& thread) { return thread.state == State::ended; });
}

bool Block::has_come(std::span<Thread> warp, const Thread& first) {
    using State = Thread::State;
    for (uint32_t lane = 0; lane < warp.size(); ++lane) {
        const Thread& thread = warp[lane];
        if ((first.members >> lane & 1) == 0 || thread.state == State::ended)
            continue;
        if (thread.state != State::at_warp_operation || thread.members != first.members ||
            thread.waits_at->more != first.waits_at->more)
            return false;
    }
    return true;
}

bool Block::release_members(std::span<Thread> warp) {
    using State = Thread::State;
    bool is_released = false;
    for (Thread& first : warp) {
        if (first.state != State::at_warp_operation)
            continue;
        if ((first.members >> (first.linear % warp_size) & 1) == 0) {
            first.fail(Fault::illegal_instruction, "a thread that is no member of its own mask");
            return false;
        }
        if (!has_come(warp, first))
            continue;
        std::vector<Thread*> together;
        for (uint32_t lane = 0; lane < warp.size(); ++lane)
            if ((first.members >> lane & 1) != 0 && warp[lane].state == State::at_warp_operation)
                together.push_back(&warp[lane]);
        static_cast<const Meeting*>(first.waits_at->more)->execute(together);
        for (Thread* thread : together)
            thread->state = State::ready;
        is_released = true;
    }
    return is_released;
}

bool Block::release_converged(std::span<Thread> warp) {
    using State = Thread::State;
    const Thread* first = nullptr;
    for (const Thread& thread : warp)
        if (thread.state == State::at_convergence && (first == nullptr || thread.is_behind(*first)))
            first = &thread;
    if (first == nullptr)
        return false;
    std::vector<Thread*> together;
    for (Thread& thread : warp)
        if (thread.state == State::at_convergence && thread.is_at_same_place(*first))
            together.push_back(&thread);
    static_cast<const Meeting*>(first->waits_at->more)->execute(together);
    for (Thread* thread : together)
        thread->state = State::ready;
    return true;
}

// --- barriers ---

bool Block::release_barriers() {
    struct Arrived {
        uint32_t number;
        uint32_t threads;
        uint32_t expected;
    };
    std::vector<Arrived> barriers;
    uint32_t living = 0;
    for (const Thread& thread : threads_) {
        living += thread.state != Thread::State::ended ? 1 : 0;
        if (thread.state != Thread::State::at_barrier)
            continue;
        auto found = std::ranges::find(barriers, thread.barrier, &Arrived::number);
        if (found == barriers.end())
            found = barriers.insert(found, {thread.barrier, 0, thread.barrier_threads});
        ++found->threads;
    }
    bool is_released = false;
    for (const Arrived& one : barriers)
        if (one.threads >= (one.expected != 0 ? std::min(one.expected, living) : living)) {
            release_barrier(one.number);
            is_released = true;
        }
    return is_released;
}

void Block::release_barrier(uint32_t number) {
    std::vector<Thread*> together;
    for (Thread& thread : threads_) {
        if (thread.state != Thread::State::at_barrier || thread.barrier != number)
            continue;
        // Threads of a warp come to an .aligned barrier together.
        if (!together.empty() && together.back()->linear / warp_size == thread.linear / warp_size &&
            thread.waits_at->immediate != 0 && !thread.is_at_same_place(*together.back())) {
            thread.fail(Fault::launch_failed, "threads of a warp at different barriers");
            return;
        }
        together.push_back(&thread);
    }
    if (const auto* const meeting = static_cast<const Meeting*>(together.front()->waits_at->more))
        meeting->execute(together);
    for (Thread* thread : together)
        thread->state = Thread::State::ready;
}

void Block::report_deadlock() {
    for (Thread& thread : threads_)
        if (thread.state != Thread::State::ended) {
            thread.fail(Fault::launch_failed, "a thread waits for others that do not come");
            return;
        }
}

}  // namespace polder::ptx
