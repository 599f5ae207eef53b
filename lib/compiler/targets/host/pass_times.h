// Where the time for a kernel's code goes, for POCL_DEBUG=timing: one line for each kernel, its largest parts first.
//
// Owned by one compilation, used by its thread. Processor time of that thread, so that other programs do not change the result.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace llvm {
class PassInstrumentationCallbacks;
}  // namespace llvm

namespace polder::compiler {

class PassTimes {
public:
    PassTimes();

    // Parts may contain other parts, whose time is not counted for the outer part.
    void begin(std::string_view part);
    void end();
    // Each pass and each analysis becomes a part.
    void watch(llvm::PassInstrumentationCallbacks& callbacks);

    // The sum and the parts of at least a hundredth of it. Empty when the category is off.
    [[nodiscard]] std::string text() const;

private:
    struct Clock {
        using duration = std::chrono::nanoseconds;
        using rep = duration::rep;
        using period = duration::period;
        using time_point = std::chrono::time_point<Clock>;
        static constexpr bool is_steady = true;
        static time_point now();
    };
    struct Open {
        std::string part;
        Clock::time_point start;
        Clock::duration inside{};  // of other parts
    };

    const bool is_on_;
    std::vector<Open> open_;
    std::map<std::string, Clock::duration> times_;
};

}  // namespace polder::compiler
