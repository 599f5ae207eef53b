#include "pass_times.h"

#include <base/log.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <llvm/IR/PassInstrumentation.h>

namespace polder::compiler {

PassTimes::Clock::time_point PassTimes::Clock::now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

PassTimes::PassTimes() : is_on_(log::enabled(log::Category::timing)) {}

void PassTimes::begin(std::string_view part) {
    if (is_on_)
        open_.push_back({std::string{part}, Clock::now(), {}});
}

void PassTimes::end() {
    if (open_.empty())
        return;
    const Open done = std::move(open_.back());
    open_.pop_back();
    const Clock::duration all = Clock::now() - done.start;
    times_[done.part] += all - done.inside;
    if (!open_.empty())
        open_.back().inside += all;
}

void PassTimes::watch(llvm::PassInstrumentationCallbacks& callbacks) {
    if (!is_on_)
        return;
    const auto start = [this](llvm::StringRef name, const auto&) { begin(std::string_view{name.data(), name.size()}); };
    callbacks.registerBeforeNonSkippedPassCallback(start);
    callbacks.registerAfterPassCallback([this](llvm::StringRef, const auto&, const auto&) { end(); });
    callbacks.registerAfterPassInvalidatedCallback([this](llvm::StringRef, const auto&) { end(); });
    callbacks.registerBeforeAnalysisCallback(start);
    callbacks.registerAfterAnalysisCallback([this](llvm::StringRef, const auto&) { end(); });
}

std::string PassTimes::text() const {
    Clock::duration all{};
    std::vector<std::pair<std::string, Clock::duration>> parts(times_.begin(), times_.end());
    for (const auto& [part, time] : parts)
        all += time;
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    const auto milliseconds = [](Clock::duration time) {
        char text[32];
        std::snprintf(text, sizeof text, "%.1f", std::chrono::duration<double, std::milli>(time).count());
        return std::string{text};
    };
    std::string result;
    for (const auto& [part, time] : parts)
        if (time * 100 >= all)
            result += (result.empty() ? milliseconds(all) + " ms: " : ", ") + part + " " + milliseconds(time);
    return result;
}

}  // namespace polder::compiler
