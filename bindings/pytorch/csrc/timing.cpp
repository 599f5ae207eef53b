// Times of events, and those for torch.autograd.profiler and torch.profiler: they record an event before and after each operator, and ask for the
// time between the two.
#include "timing.h"

#include "platform.h"

#include <c10/core/DeviceGuard.h>
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

namespace torch_opencl {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

// Nanoseconds on the clock of the device when the event was complete.
cl_ulong end_of(const Event& event) {
    cl_ulong end = 0;
    check(clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr),
          "clGetEventProfilingInfo");
    return end;
}

class Stubs final : public torch::profiler::impl::ProfilerStubs {
public:
    void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
        const int current = current_device();
        if (device)
            *device = static_cast<c10::DeviceIndex>(current);
        *event = std::make_shared<Event>(torch_opencl::record(current_queue(current)));
        if (cpu_ns)
            *cpu_ns = c10::getTime();
    }
    // In microseconds. Waits for both events.
    float elapsed(const ProfilerVoidEventStub* first, const ProfilerVoidEventStub* second) const override {
        const auto& begin = *static_cast<const Event*>(first->get());
        const auto& end = *static_cast<const Event*>(second->get());
        const cl_event both[] = {begin.get(), end.get()};
        check(clWaitForEvents(2, both), "clWaitForEvents");
        return static_cast<float>(milliseconds_between(begin, end) * 1e3);
    }
    // Without a tool that would read them.
    void mark(const char*) const override {}
    void rangePush(const char*) const override {}
    void rangePop() const override {}
    bool enabled() const override { return true; }
    void onEachDevice(std::function<void(int)> call) const override {
        const auto count = static_cast<int>(Platform::get().devices().size());
        for (int device = 0; device < count; ++device) {
            const c10::DeviceGuard guard({c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)});
            call(device);
        }
    }
    void synchronize() const override { synchronize_device(current_device()); }
};

const struct RegisterStubs {
    RegisterStubs() { torch::profiler::impl::registerPrivateUse1Methods(new Stubs); }
} register_stubs;

}  // namespace

double milliseconds_between(const Event& first, const Event& second) {
    const auto begin = static_cast<double>(end_of(first));
    return (static_cast<double>(end_of(second)) - begin) / 1e6;
}

}  // namespace torch_opencl
