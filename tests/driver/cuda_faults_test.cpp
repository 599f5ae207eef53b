// Whatever CUDA call fails, whichever code it returns: every wait ends, what was submitted has completed, with the right bytes or a
// failure, and the driver goes on with the next commands, on another GPU when this one is lost. A wait without end is ended by SIGALRM.
#include "conformance.h"
#include "cuda_driver.h"
#include "kernels.h"

#include <array>
#include <cuda/cuda_api.h>
#include <thread>
#include <unistd.h>

namespace polder::conformance {
namespace {

constexpr int out_of_memory = 2;
constexpr int invalid_value = 1;
constexpr int launch_failed = 719;  // the GPU is lost
constexpr unsigned seconds_max = 60;  // for one failure

class CudaFaults : public CudaDriver {
protected:
    void SetUp() override {
        alarm(seconds_max);
        CudaDriver::SetUp();
        fail_always_ = fake_cuda::find<fake_cuda::FailAlways>("fake_cuda_fail_always");
        fail_call_ = fake_cuda::find<fake_cuda::FailCall>("fake_cuda_fail_call");
        failed_call_ = fake_cuda::find<fake_cuda::FailedCall>("fake_cuda_failed_call");
        hold_ = fake_cuda::find<fake_cuda::HoldStreams>("fake_cuda_hold_streams");
    }
    void TearDown() override {
        fake_cuda::find<fake_cuda::RestoreDevices>("fake_cuda_restore_devices")();
        alarm(0);
    }
    // With the commands of all queues.
    static void wait(Timepoint point) { point.queue->wait(point.value); }
    [[nodiscard]] static Status status_of(Timepoint point) { return point.queue->status(point.value); }

    fake_cuda::FailAlways fail_always_ = nullptr;
    fake_cuda::FailCall fail_call_ = nullptr;
    fake_cuda::FailedCall failed_call_ = nullptr;
    fake_cuda::HoldStreams hold_ = nullptr;
};

// --- single failures ---

TEST_F(CudaFaults, ACounterThatCanNeverBeWrittenIsPublishedByTheHost) {
    const auto queue = make_queue();
    fail_always_("cuStreamWriteValue64_v2", out_of_memory);
    Timepoint last;
    for (int i = 0; i < 200; ++i)
        last = queue->marker({});
    wait(last);
    EXPECT_EQ(queue->completed(), last.value);
    fail_always_("cuStreamWriteValue64_v2", 0);
    for (uint64_t value = 1; value <= last.value; ++value)
        EXPECT_EQ(queue->status(value), Status::success);
    wait(queue->marker({}));
}

TEST_F(CudaFaults, ACounterThatCannotBeWrittenFailsNoCommand) {
    const auto queue = make_queue();
    driver::OperationTimes times;
    const Timepoint first = queue->marker({});
    fail_next_("cuStreamWriteValue64_v2", out_of_memory);
    const Timepoint second = queue->marker({{}, &times});  // its beginning writes the counter
    wait(second);
    EXPECT_EQ(status_of(first), Status::success);
    EXPECT_EQ(status_of(second), Status::success);
}

// An event whose record is refused was recorded before, for a command that is over.
TEST_F(CudaFaults, ACommandWhoseEventCannotBeRecordedIsNotCompleteBeforeItHasExecuted) {
    const auto queue = make_queue();
    const DeviceBytes memory(*device_, 64);
    const std::byte pattern{7};
    std::array<driver::OperationTimes, 3> times;
    for (int i = 0; i < 2; ++i)
        wait(queue->marker({{}, &times[0]}));
    // Both events of the next command are used for the second time.
    fail_always_("cuEventRecord", out_of_memory);
    hold_(true);
    const Timepoint held = queue->fill({memory.at(), 64, {&pattern, 1}}, {{}, &times[1]});
    queue->flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(held.is_complete());
    hold_(false);
    wait(held);
    EXPECT_EQ(status_of(held), Status::success);
    EXPECT_LE(times[1].start_ns, times[1].end_ns);
    fail_always_("cuEventRecord", 0);
    wait(queue->marker({{}, &times[2]}));
    EXPECT_GE(times[2].start_ns, times[1].end_ns);
}

TEST_F(CudaFaults, AnEventForAnotherQueueThatCannotBeRecordedFailsNoCommand) {
    const auto first = make_queue();
    const auto second = make_queue();
    hold_(true);
    const Timepoint before = first->marker({});
    fail_next_("cuEventRecord", out_of_memory);
    const std::array waits{before};
    const Timepoint after = second->marker({waits});
    hold_(false);
    wait(after);
    EXPECT_EQ(status_of(before), Status::success);
    EXPECT_EQ(status_of(after), Status::success);
}

TEST_F(CudaFaults, EventsThatCannotBeQueriedAreDoneWithout) {
    const auto first = make_queue();
    driver::OperationTimes times;
    fail_always_("cuEventQuery", invalid_value);
    const Timepoint timed = first->marker({{}, &times});
    wait(timed);
    EXPECT_EQ(status_of(timed), Status::success);
    fail_always_("cuEventQuery", 0);
}

TEST_F(CudaFaults, AStreamThatCannotBeQueriedAnyMoreIsALostGpu) {
    const auto device = std::move(*driver_->open(1, SpaceId{2}, ""));
    const auto queue = *device->create_queue(driver::QueueRole::compute);
    testing::internal::CaptureStderr();
    fail_always_("cuStreamQuery", invalid_value);
    fail_always_("cuStreamWriteValue64_v2", invalid_value);
    const Timepoint lost = queue->marker({});
    wait(lost);
    fail_always_("cuStreamQuery", 0);
    fail_always_("cuStreamWriteValue64_v2", 0);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("Fake GPU 1 is lost"), std::string::npos);
    EXPECT_EQ(status_of(lost), Status::out_of_resources);
    wait(make_queue()->marker({}));
}

TEST_F(CudaFaults, WithoutPinnedMemoryACopyOfPageableMemoryFails) {
    const auto queue = make_queue();
    const DeviceBytes there(*device_, 100);
    Bytes bytes = random_bytes(100, 1);
    fail_always_("cuMemHostAlloc", out_of_memory);
    for (const Timepoint copy : {upload(*queue, there.at(), bytes), download(*queue, bytes, there.at())}) {
        wait(copy);
        EXPECT_EQ(status_of(copy), Status::mem_object_allocation_failure);
    }
    fail_always_("cuMemHostAlloc", 0);
    Bytes out(100);
    const Timepoint in = upload(*queue, there.at(), bytes);
    const Timepoint back = download(*queue, out, there.at());
    wait(back);
    EXPECT_EQ(status_of(in), Status::success);
    EXPECT_EQ(out, bytes);
}

TEST_F(CudaFaults, MemoryThatCannotBeUnmappedBlocksNoOther) {
    const driver::Memory first = *device_->reserve_memory(ByteCount{1});
    fail_next_("cuMemUnmap", invalid_value);
    device_->release_memory(first);
    const auto second = device_->reserve_memory(ByteCount{1});
    ASSERT_TRUE(second.has_value()) << second.error().detail();
    device_->release_memory(*second);
    driver::VirtualMemory& memory = *device_->virtual_memory();
    const uint64_t page = memory.page().value;
    const driver::Memory range{*memory.reserve_addresses(ByteCount{page}), page};
    ASSERT_TRUE(memory.commit(range).has_value());
    fail_next_("cuMemUnmap", invalid_value);
    memory.decommit(range);
    EXPECT_TRUE(memory.commit(range).has_value());
    memory.decommit(range);
    memory.release_addresses(range);
}

// Another GPU that cannot be given access is no reason to lose this one.
TEST_F(CudaFaults, WithoutAccessThereIsNoLink) {
    const driver::Memory memory = *device_->reserve_memory(ByteCount{1});
    fail_always_("cuMemSetAccess", out_of_memory);
    const auto other = std::move(*driver_->open(1, SpaceId{2}, ""));
    fail_always_("cuMemSetAccess", 0);
    EXPECT_FALSE(other->peer_copy()->link(SpaceId{1}).has_value());
    EXPECT_TRUE(device_->peer_copy()->link(SpaceId{2}).has_value());  // it had no memory yet
    const auto queue = make_queue();
    wait(queue->marker({}));
    EXPECT_EQ(queue->status(1), Status::success);
    device_->release_memory(memory);
}

TEST_F(CudaFaults, AKernelWhoseLimitsAreNotKnownIsRefused) {
    fail_next_("cuFuncGetAttribute", invalid_value);
    EXPECT_FALSE(device_->load(fake_cuda::code_of({.function = CountVisits::run})).has_value());
    EXPECT_TRUE(device_->load(fake_cuda::code_of({.function = CountVisits::run})).has_value());
}

// CUDA cannot cancel a wait for an event of a GPU that is lost.
TEST_F(CudaFaults, AQueueThatWaitsForALostGpuIsLostAloneAndEnds) {
    const auto peer = std::move(*driver_->open(1, SpaceId{2}, ""));
    const auto lost = *peer->create_queue(driver::QueueRole::compute);
    const auto waiting = make_queue();
    const DeviceBytes there(*device_, size_t{32} << 20);
    const Bytes in = random_bytes(size_t{32} << 20, 3);
    testing::internal::CaptureStderr();
    const Timepoint before = waiting->marker({});
    wait(before);
    hold_(true);
    const Timepoint never = lost->marker({});
    const std::array waits{never};
    const Timepoint after = waiting->marker({waits});
    // Through more pinned memory than the queue uses at once.
    const Timepoint copied = upload(*waiting, there.at(), in);
    fake_cuda::find<fake_cuda::LoseDevice>("fake_cuda_lose_device")(1);
    hold_(false);
    wait(never);
    wait(copied);
    EXPECT_EQ(status_of(before), Status::success);
    EXPECT_EQ(status_of(never), Status::out_of_resources);
    EXPECT_NE(status_of(after), Status::success);
    EXPECT_NE(status_of(copied), Status::success);
    const Timepoint later = waiting->marker({});
    wait(later);
    EXPECT_NE(status_of(later), Status::success);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("Fake GPU 1 is lost"), std::string::npos);
    // Other queues of the GPU go on.
    const auto other = make_queue();
    Bytes out(in.size());
    static_cast<void>(upload(*other, there.at(), in));
    const Timepoint back = download(*other, out, there.at());
    wait(back);
    EXPECT_EQ(status_of(back), Status::success);
    EXPECT_TRUE(out == in);
}

// --- every call fails in turn ---

constexpr uint64_t bytes = 192 << 10;

bool is_known(Status status) {
    return status == Status::success || status == Status::out_of_resources || status == Status::out_of_host_memory ||
           status == Status::mem_object_allocation_failure ||
           status == Status::exec_status_error_for_events_in_wait_list;
}

// Two GPUs: copies, fills, kernels, times, waits between queues and between GPUs, and a kernel that prints. Everything that has to do
// with the driver is here, so that each of its calls can fail.
class Flow {
public:
    explicit Flow(driver::Driver& driver) : driver_(driver) {}
    Flow(const Flow&) = delete;
    Flow& operator=(const Flow&) = delete;
    ~Flow() {
        queues_.clear();
        for (uint32_t gpu = 0; gpu < 2; ++gpu)
            if (devices_[gpu]) {
                if (memory_[gpu].size != 0)
                    devices_[gpu]->release_memory(memory_[gpu]);
            }
    }

    // True when everything has succeeded.
    bool run() { return open() && (submit(), finish()); }
    // Results that no failure explains.
    [[nodiscard]] const std::string& complaints() const { return complaints_; }
    // After a failure: the same queues, and new ones.
    [[nodiscard]] bool go_on() {
        for (const auto& queue : queues_)
            if (!works(*queue))
                return false;
        for (const auto& device : devices_)
            if (device) {
                const auto queue = device->create_queue(driver::QueueRole::compute);
                if (!queue || !works(**queue))
                    return false;
            }
        return true;
    }

private:
    // Two kernels have counted in the first word.
    [[nodiscard]] bool are_bytes_right() const {
        return out_[0] == static_cast<std::byte>(std::to_integer<int>(in_[0]) + 2) &&
               std::equal(out_.begin() + 1, out_.end(), in_.begin() + 1);
    }
    static bool works(driver::Queue& queue) {
        const Timepoint point = queue.marker({});
        queue.flush();
        queue.wait(point.value);
        return queue.status(point.value) == Status::success;
    }
    bool open() {
        for (uint32_t gpu = 0; gpu < 2; ++gpu) {
            auto device = driver_.open(gpu, SpaceId{gpu + 1}, "copy_threads=1,copy_chunk=64K");
            if (!device)
                return false;
            devices_[gpu] = std::move(*device);
            const auto memory = devices_[gpu]->reserve_memory(ByteCount{bytes});
            if (!memory)
                return false;
            memory_[gpu] = *memory;
            for (int i = 0; i < 2 - static_cast<int>(gpu); ++i) {
                auto queue = devices_[gpu]->create_queue(driver::QueueRole::compute);
                if (!queue)
                    return false;
                queues_.push_back(std::move(*queue));
            }
        }
        for (const Prints prints : {Prints::no, Prints::yes}) {
            auto kernel = devices_[0]->load(fake_cuda::code_of(
                {.function = CountVisits::run}, prints == Prints::yes ? fake_cuda::print_records : nullptr));
            if (!kernel)
                return false;
            kernels_.push_back(std::move(*kernel));
        }
        driver::VirtualMemory& pages = *devices_[0]->virtual_memory();
        const uint64_t page = pages.page().value;
        const auto addresses = pages.reserve_addresses(ByteCount{2 * page});
        if (!addresses)
            return false;
        const bool committed = pages.commit({*addresses, 2 * page}).has_value();
        if (committed)
            pages.decommit({*addresses, 2 * page});
        pages.release_addresses({*addresses, 2 * page});
        return committed;
    }
    void submit() {
        driver::Queue& first = *queues_[0];
        driver::Queue& second = *queues_[1];
        driver::Queue& peer = *queues_[2];
        const CountVisits arguments{memory_[0].address.value};
        const auto keep = [this](Timepoint point) { return points_.emplace_back(point); };
        const Timepoint in =
            keep(first.copy({host_end(in_.data()), device_end(memory_[0].address), {bytes, 1, 1}}, {{}, &times_[0]}));
        const std::array behind_in{in};
        const Timepoint counted = keep(second.launch(launch_of(*kernels_[0], arguments), {behind_in, &times_[1]}));
        const std::array behind_counted{counted};
        const Timepoint printed = keep(first.launch(launch_of(*kernels_[1], arguments), {behind_counted}));
        const std::array behind_printed{printed};
        const std::byte pattern{9};
        const Timepoint filled = keep(peer.fill({memory_[1].address, bytes, {&pattern, 1}}, {behind_printed}));
        const std::array behind_filled{filled, printed};
        const driver::CopyOperation move{device_end(memory_[0].address), device_end(memory_[1].address), {bytes, 1, 1}};
        const Timepoint moved = keep(devices_[1]->peer_copy()->copy_all(peer, SpaceId{1}, {&move, 1}, {behind_filled}));
        const std::array behind_moved{moved};
        keep(second.marker({behind_moved, &times_[2]}));
        keep(peer.copy({device_end(memory_[1].address), host_end(out_.data()), {bytes, 1, 1}}, {behind_moved}));
    }
    bool finish() {
        for (const auto& queue : queues_)
            queue->flush();
        bool succeeded = true;
        for (const Timepoint point : points_) {
            point.queue->wait(point.value);
            if (!point.is_complete())
                complaints_ += "a wait has ended too early. ";
            const Status status = point.queue->status(point.value);
            if (!is_known(status))
                complaints_ += "a command has the status " + std::to_string(static_cast<int>(status)) + ". ";
            succeeded = succeeded && status == Status::success;
        }
        for (const driver::OperationTimes& times : times_)
            if (times.start_ns > times.end_ns)
                complaints_ += "a command ends before it starts. ";
        if (succeeded && !are_bytes_right())
            complaints_ += "the bytes are wrong. ";
        return succeeded;
    }

    driver::Driver& driver_;
    const Bytes in_ = [] {
        Bytes made = random_bytes(bytes, 5);
        made[0] = std::byte{17};
        return made;
    }();
    Bytes out_ = Bytes(bytes);
    std::array<driver::OperationTimes, 3> times_;
    std::array<std::unique_ptr<driver::Device>, 2> devices_;
    std::array<driver::Memory, 2> memory_;
    std::vector<std::unique_ptr<driver::LoadedKernel>> kernels_;
    std::vector<std::unique_ptr<driver::Queue>> queues_;
    std::vector<Timepoint> points_;
    std::string complaints_;
};

// Kernels print, and a lost GPU is reported: neither is shown.
class Silence {
public:
    Silence() {
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
    }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
    ~Silence() {
        static_cast<void>(testing::internal::GetCapturedStdout());
        static_cast<void>(testing::internal::GetCapturedStderr());
    }
};

class CudaCallFaults : public CudaFaults, public testing::WithParamInterface<int> {
protected:
    void SetUp() override {
        CudaFaults::SetUp();
        device_.reset();
    }
    // The flow with failures that `arm` switches on and `disarm` off, then the flow without any. Returns what was wrong.
    template <class Arm, class Disarm>
    static std::string fail(int code, Arm arm, Disarm disarm) {
        alarm(seconds_max);
        const auto driver = driver_named("cuda");
        if (driver->count() != 2)
            return "no GPUs";
        const Silence silence;
        std::string wrong;
        {
            Flow flow(*driver);
            arm();
            const bool succeeded = flow.run();
            wrong += flow.complaints();
            const bool may_fail = disarm();
            if (!succeeded && !may_fail)
                wrong += "something fails without a reason. ";
            if (code != launch_failed && !flow.go_on())
                wrong += "the queues do not go on. ";
        }
        Flow after(*driver);
        if (!after.run())
            wrong += "the next flow fails. ";
        return wrong + after.complaints();
    }
};

// Every so many of them, as POLDER_TEST_STRIDE says, from another one on for each code. All of them take minutes.
TEST_P(CudaCallFaults, EachCallFailsInTurn) {
    const int code = GetParam();
    const char* const text = std::getenv("POLDER_TEST_STRIDE");
    const int64_t stride = text ? std::max(1, std::atoi(text)) : 47;
    int64_t calls = code % stride;
    for (bool struck = true; struck && !HasFailure(); calls += stride) {
        ASSERT_LT(calls, 5000);
        std::string failed;
        const auto disarm = [&] {
            const char* const call = failed_call_();
            struck = call != nullptr;
            failed = struck ? call : "none";
            fail_call_(-1, 0);
            return struck;
        };
        const std::string wrong = fail(code, [&] { fail_call_(calls, code); }, disarm);
        EXPECT_EQ(wrong, "") << "call " << calls << ", " << failed;
    }
    EXPECT_GT(calls, 100);
}

TEST_P(CudaCallFaults, EachFunctionFailsForEver) {
    const int code = GetParam();
    const char* const functions[] = {
#define POLDER_NAME_OF(name, symbol, parameters) symbol,
        POLDER_CUDA_FUNCTIONS(POLDER_NAME_OF)
#undef POLDER_NAME_OF
    };
    for (const char* const function : functions) {
        const auto disarm = [&] {
            fail_always_(function, 0);
            return true;
        };
        // A GPU whose state cannot be queried any more is lost, whatever the code.
        const bool loses =
            std::string_view(function) == "cuStreamQuery" || std::string_view(function) == "cuCtxSetCurrent";
        const std::string wrong = fail(loses ? launch_failed : code, [&] { fail_always_(function, code); }, disarm);
        EXPECT_EQ(wrong, "") << function;
    }
}

INSTANTIATE_TEST_SUITE_P(Codes, CudaCallFaults, testing::Values(invalid_value, out_of_memory, launch_failed));

}  // namespace
}  // namespace polder::conformance
