// The first GPU of the fake libcuda, opened by the CUDA driver, for tests of what the driver promises beyond the interface.
#pragma once

#include "conformance.h"
#include "driver_named.h"

#include <fake_kernels.h>

namespace polder::conformance {

class CudaDriver : public testing::Test {
protected:
    void SetUp() override {
        driver_ = driver_named("cuda");
        fail_next_ = fake_cuda::find<fake_cuda::FailNext>("fake_cuda_fail_next");
        calls_ = fake_cuda::find<fake_cuda::CountCalls>("fake_cuda_calls");
        ASSERT_NE(fail_next_, nullptr) << "this is not the fake libcuda";
        auto opened = driver_->open(0, SpaceId{1}, "");
        ASSERT_TRUE(opened.has_value()) << opened.error().detail();
        device_ = std::move(*opened);
    }
    [[nodiscard]] std::unique_ptr<driver::Queue> make_queue() {
        return *device_->create_queue(driver::QueueRole::compute);
    }
    static Timepoint upload(driver::Queue& queue, DeviceAddress to, const Bytes& from) {
        return queue.copy({host_end(from.data()), device_end(to), {from.size(), 1, 1}}, {});
    }
    static Timepoint download(driver::Queue& queue, Bytes& to, DeviceAddress from) {
        return queue.copy({device_end(from), host_end(to.data()), {to.size(), 1, 1}}, {});
    }

    std::unique_ptr<driver::Driver> driver_;
    std::unique_ptr<driver::Device> device_;
    fake_cuda::FailNext fail_next_ = nullptr;
    fake_cuda::CountCalls calls_ = nullptr;
};

}  // namespace polder::conformance
