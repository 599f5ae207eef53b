// FailureLog: which operations of a queue have failed, and why, in bounded memory.
//
// Operations that failed one after the other with one status are one run. Up to `runs_max` runs are exact. When there are
// more, or the host has no memory for more, the older half of the runs is kept at half the resolution: two neighbouring runs
// become one, and the operations between them count as failed too. So a failure is never forgotten; only an operation that
// is older than `runs_max / 2` separate failures may be reported as failed although it succeeded.
//
// A lookup takes O(log runs); `note` takes O(1) amortized, or O(runs) for a value before the newest one. No lock: the owner's mutex
// guards it. The queues of all drivers that keep their own statuses use it.
#pragma once

#include <base/small_vector.h>

#include <polder/result.h>

namespace polder::devices {

class FailureLog {
public:
    static constexpr uint32_t runs_max = 8192;  // 192 KiB

    // Values come in ascending order, with few exceptions. One that was noted before keeps its status. Never fails.
    void note(uint64_t value, Status status) noexcept;
    // Status::success when `value` has not failed.
    [[nodiscard]] Status status(uint64_t value) const noexcept;
    [[nodiscard]] uint32_t runs() const { return runs_.size(); }

private:
    struct Run {
        uint64_t first;
        uint64_t last;
        Status status;
    };
    void note_earlier(uint64_t value, Status status) noexcept;
    [[nodiscard]] bool has_room() noexcept;
    void coarsen() noexcept;

    static constexpr uint32_t few = 8;
    SmallVector<Run, few> runs_;
};

}  // namespace polder::devices
