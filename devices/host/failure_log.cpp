#include <algorithm>
#include <host/failure_log.h>
#include <new>

namespace polder::devices {

void FailureLog::note(uint64_t value, Status status) noexcept {
    if (!runs_.empty()) {
        Run& newest = runs_[runs_.size() - 1];
        if (newest.last + 1 == value && newest.status == status) {
            newest.last = value;
            return;
        }
        if (value <= newest.last) {
            note_earlier(value, status);
            return;
        }
    }
    if (!has_room())
        coarsen();
    runs_.push_back({value, value, status});
}

// Notes a value that is not after the newest run.
void FailureLog::note_earlier(uint64_t value, Status status) noexcept {
    if (this->status(value) != Status::success)
        return;
    if (!has_room())
        coarsen();
    Run* const run = std::ranges::lower_bound(runs_, value, {}, &Run::last);
    if (run->first <= value)  // the value is in a run already
        return;
    if (run->first == value + 1 && run->status == status) {
        run->first = value;
        return;
    }
    const auto index = run - runs_.begin();
    runs_.push_back(runs_.back());
    std::copy_backward(runs_.begin() + index, runs_.end() - 1, runs_.end());
    runs_[static_cast<size_t>(index)] = {value, value, status};
}

bool FailureLog::has_room() noexcept {
    if (runs_.size() < runs_.capacity())
        return true;
    if (runs_.size() == runs_max)
        return false;
    try {
        runs_.reserve(std::min(2 * runs_.size(), runs_max));
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

// Joins the first run with the second, the third with the fourth, and so on, in the older half.
void FailureLog::coarsen() noexcept {
    const uint32_t old = runs_.size() / 4 * 2;
    for (uint32_t i = 0; i < old; i += 2)
        runs_[i / 2] = {runs_[i].first, runs_[i + 1].last, runs_[i + 1].status};
    std::copy(runs_.begin() + old, runs_.end(), runs_.begin() + old / 2);
    runs_.resize_down(runs_.size() - old / 2);
}

Status FailureLog::status(uint64_t value) const noexcept {
    const auto runs = runs_.view();
    const auto found = std::ranges::lower_bound(runs, value, {}, &Run::last);
    return found == runs.end() || value < found->first ? Status::success : found->status;
}

}  // namespace polder::devices
