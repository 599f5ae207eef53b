// The CPU driver in the conformance suite: with all processors, and with one.
#include "conformance.h"
#include "driver_named.h"

#include <sched.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() { return driver_named("cpu"); }

// Opens devices while the calling thread may use one processor only.
class OnOneProcessor final : public driver::Driver {
    [[nodiscard]] std::string_view name() const override { return "cpu"; }
    [[nodiscard]] uint32_t count() const override { return 1; }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>> open(uint32_t index, SpaceId space,
                                                               std::string_view parameters) override {
        cpu_set_t all;
        sched_getaffinity(0, sizeof all, &all);
        cpu_set_t one;
        CPU_ZERO(&one);
        for (size_t cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
            if (CPU_ISSET(cpu, &all))
                CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        auto device = cpu_->open(index, space, parameters);
        sched_setaffinity(0, sizeof all, &all);
        EXPECT_TRUE(device.has_value() && (*device)->info().compute_units == 1);
        return device;
    }
    const std::unique_ptr<driver::Driver> cpu_ = make();
};

std::unique_ptr<driver::Driver> make_on_one_processor() { return std::make_unique<OnOneProcessor>(); }

} // namespace

POLDER_DRIVER_CONFORMANCE(Cpu, testing::Values(DriverUnderTest{"cpu", make, ""},
                                               DriverUnderTest{"one_processor", make_on_one_processor, ""}));

} // namespace polder::conformance
