// What happens to work in flight when a process ends.
#include "conformance.h"
#include "kernels.h"

#include <array>
#include <cstdlib>

namespace polder::conformance {

// The platform never closes its drivers: nothing is destroyed when a process ends.
TEST_P(DriverConformance, AProcessMayEndWithWorkInFlight) {
    if (!executes_tests_kernels())
        GTEST_SKIP() << "needs kernels of its own";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto leave_with_work = [this] {
        static auto* const queue = make_queue().release();
        static auto* const kernel = load({.function = CountVisits::run}).release();
        constexpr uint64_t count = 1 << 20;
        // Reachable to the end, for the leak checker.
        static auto* const out = new DeviceBytes(device(), count * 4);
        const CountVisits arguments{out->at().value};
        for (int i = 0; i < 200; ++i) {
            driver::LaunchOperation operation = launch_of(*kernel, arguments);
            operation.global_size[0] = count;
            operation.local_size[0] = 256;
            static_cast<void>(queue->launch(operation, {}));
        }
        queue->flush();
        queue->wait(1);
        std::exit(7);
    };
    EXPECT_EXIT(leave_with_work(), testing::ExitedWithCode(7), "");
}

} // namespace polder::conformance
