// Which CUDA context a thread has when Polder has worked on it, and what this costs.
#include "cuda_driver.h"
#include "kernels.h"

#include <array>
#include <fake_kernels.h>

namespace polder::conformance {
namespace {

// The context of a GPU, which it has as long as this object exists.
class RetainedContext {
public:
    explicit RetainedContext(int gpu) : gpu_(gpu) { EXPECT_EQ(retain(&handle_, gpu), 0); }
    RetainedContext(const RetainedContext&) = delete;
    RetainedContext& operator=(const RetainedContext&) = delete;
    ~RetainedContext() { EXPECT_EQ(release(gpu_), 0); }
    [[nodiscard]] void* handle() const { return handle_; }

private:
    static inline const auto retain = fake_cuda::find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain");
    static inline const auto release = fake_cuda::find<int (*)(int)>("cuDevicePrimaryCtxRelease_v2");
    const int gpu_;
    void* handle_ = nullptr;
};

void set_current(void* context) { EXPECT_EQ(fake_cuda::find<int (*)(void*)>("cuCtxSetCurrent")(context), 0); }
void* current_context() {
    void* context = nullptr;
    EXPECT_EQ(fake_cuda::find<int (*)(void**)>("cuCtxGetCurrent")(&context), 0);
    return context;
}

// What a launch of a row costs beside the launch itself: a query of the thread's context and, where the application has made another one
// current, a change of it and back. No events, no queries, one write of the counter for each 64 and more. Each row has a queue of its own, because the
// distance of these writes doubles unless a wait finds work in progress.
TEST_F(CudaDriver, ALaunchOfARowIsOneCallBesideTheContext) {
    constexpr std::array functions{"cuLaunchKernel",   "cuCtxGetCurrent", "cuCtxSetCurrent", "cuStreamWriteValue64_v2",
                                   "cuEventCreate",    "cuEventRecord",   "cuEventQuery",    "cuStreamQuery",
                                   "cuStreamWaitEvent"};
    const auto queue = make_queue(), queue_of_second_row = make_queue();
    const auto kernel = *device_->load(fake_cuda::code_of({.function = CountVisits::run}));
    const DeviceBytes out(*device_, 4);
    const CountVisits arguments{out.at().value};
    const driver::LaunchOperation operation = launch_of(*kernel, arguments);
    const auto calls_of_a_row = [&](driver::Queue& on) {
        std::array<uint64_t, functions.size()> calls{};
        for (size_t i = 0; i < functions.size(); ++i)
            calls[i] = calls_(functions[i]);
        Timepoint last;
        for (int i = 0; i < 64; ++i)
            last = on.launch(operation, {{&last, last.queue ? 1u : 0u}});
        for (size_t i = 0; i < functions.size(); ++i)
            calls[i] = calls_(functions[i]) - calls[i];
        on.wait(last.value);
        return calls;
    };
    using Calls = std::array<uint64_t, functions.size()>;
    EXPECT_EQ(calls_of_a_row(*queue), (Calls{64, 65, 0, 1, 0, 0, 0, 0, 0}));
    const RetainedContext other(1);
    set_current(other.handle());
    EXPECT_EQ(calls_of_a_row(*queue_of_second_row), (Calls{64, 65, 128, 1, 0, 0, 0, 0, 0}));
    EXPECT_EQ(current_context(), other.handle());
    set_current(nullptr);
}

// The CUDA runtime would use the first GPU in such a thread.
TEST_F(CudaDriver, AThreadWithoutAContextGetsThatOfTheFirstGpuAndNoOther) {
    const auto driver = driver_named("cuda");
    const auto second = driver->open(1, SpaceId{2}, "");
    ASSERT_TRUE(second.has_value()) << second.error().detail();
    const RetainedContext first_gpu(0);
    const RetainedContext second_gpu(1);
    const auto context_after_work_on = [](driver::Device& device) {
        const auto queue = *device.create_queue(driver::QueueRole::compute);
        const DeviceBytes bytes(device, 16);
        const std::byte pattern{7};
        queue->wait(queue->fill({bytes.at(), 16, {&pattern, 1}}, {}).value);
        return current_context();
    };
    set_current(nullptr);
    EXPECT_EQ(context_after_work_on(**second), nullptr);
    EXPECT_EQ(context_after_work_on(*device_), first_gpu.handle());
    EXPECT_EQ(context_after_work_on(**second), first_gpu.handle());
    set_current(second_gpu.handle());
    EXPECT_EQ(context_after_work_on(*device_), second_gpu.handle());
    set_current(nullptr);
}

}  // namespace
}  // namespace polder::conformance
