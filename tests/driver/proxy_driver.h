// The fixture of the tests of the proxy driver over the fake ICD, whose calls can be made to fail.
#pragma once

#include "conformance.h"
#include "driver_named.h"
#include "kernels.h"

#include <fake_code.h>
#include <string>
#include <vector>

namespace polder::conformance {

class ProxyDriver : public testing::Test {
protected:
    void SetUp() override {
        driver_ = driver_named("proxy");
        ASSERT_NE(driver_, nullptr);
    }
    void TearDown() override {
        for (const std::string& call : failing_)
            fail_calls_(call.c_str(), CL_SUCCESS, 0);
        device_.reset();
        driver_.reset();
    }

    // The calls of `call` fail, after `good` more good ones.
    void fail_call(const char* call, cl_int code, int good = 0) {
        failing_.emplace_back(call);
        fail_calls_(call, code, good);
    }
    void mend(const char* call) { fail_calls_(call, CL_SUCCESS, 0); }

    [[nodiscard]] Result<std::unique_ptr<driver::Device>> open_at(const std::string& parameters, uint32_t space = 1) {
        return driver_->open(index_++, SpaceId{space}, parameters);
    }
    // The text of the failure to open such a device.
    [[nodiscard]] std::string refusal(const std::string& parameters) {
        const auto opened = open_at(parameters);
        return opened ? "opened" : std::string(opened.error().detail());
    }
    driver::Device& device() {
        if (!device_) {
            auto opened = open_at("memory=64M,icd=" POLDER_FAKE_ICD);
            EXPECT_TRUE(opened.has_value());
            device_ = std::move(*opened);
        }
        return *device_;
    }
    std::unique_ptr<driver::Queue> make_queue() {
        return std::move(*device().create_queue(driver::QueueRole::compute));
    }

    static Timepoint upload(driver::Queue& queue, DeviceAddress to, const Bytes& from, driver::Waits waits = {}) {
        return queue.copy({host_end(from.data()), device_end(to), {from.size(), 1, 1}}, {waits});
    }
    static Status status_of(Timepoint point) {
        point.queue->wait(point.value);
        return point.queue->status(point.value);
    }

private:
    std::unique_ptr<driver::Driver> driver_;
    std::unique_ptr<driver::Device> device_;
    uint32_t index_ = 0;
    std::vector<std::string> failing_;
    const fake_icd::Fail fail_calls_ = fake_icd::find<fake_icd::Fail>("fake_icd_fail");
};

}  // namespace polder::conformance
