// Driver queues that execute nothing, for tests that only look at timelines.
#pragma once

#include <polder/driver.h>

namespace polder::test {

// Every submission is complete from the beginning.
class StubQueue : public driver::Queue {
public:
    driver::Timepoint copy(const driver::CopyOperation&, const driver::Submission&) override { return {}; }
    driver::Timepoint fill(const driver::FillOperation&, const driver::Submission&) override { return {}; }
    driver::Timepoint launch(const driver::LaunchOperation&, const driver::Submission&) override { return {}; }
    driver::Timepoint call(const driver::HostOperation&, const driver::Submission&) override { return {}; }
    driver::Timepoint marker(const driver::Submission&) override { return {}; }
    void flush() override {}
    void wait(uint64_t) override {}
};

// Its one operation is complete, and has failed.
class FailedQueue final : public StubQueue {
public:
    FailedQueue() { completed_.store(1); }
    [[nodiscard]] Status status(uint64_t) const override { return Status::out_of_resources; }
};

}  // namespace polder::test
