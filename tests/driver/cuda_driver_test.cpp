// What the CUDA driver promises beyond the interface, over a fake libcuda: it never passes pageable memory to asynchronous
// copies (the fake refuses that), errors and losses are reported, peers, pinned regions, forks, streams in order.
#include "../unit/support/stub_queue.h"
#include "conformance.h"
#include "cuda_driver.h"
#include "fenced_queue.h"
#include "kernels.h"

#include <base/code_cache.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fake_kernels.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <malloc.h>
#include <map>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace polder::conformance {
namespace {

TEST_F(CudaDriver, ThereAreAsManyDevicesAsTheLibraryLists) {
    EXPECT_EQ(driver_->count(), 2u);
    const auto none = driver_->open(2, SpaceId{3}, "");
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().status(), Status::device_not_found);
}

TEST_F(CudaDriver, TheDeviceTakesPtxForItsProcessor) {
    EXPECT_EQ(device_->info().code.format, driver::CodeFormat::ptx);
    EXPECT_EQ(device_->info().code.processor, "sm_90");
    EXPECT_EQ(device_->info().code.sub_group_size, 32u);
    const auto refused = device_->load(driver::HostCode{});
    EXPECT_FALSE(refused.has_value());
}

TEST_F(CudaDriver, LocalMemoryThatProgramsPlanWithIsWhatABlockGetsWithoutTheOptIn) {
    constexpr uint64_t kib = 1024;
    EXPECT_EQ(device_->info().code.local_memory_bytes, 228 * kib);
    EXPECT_EQ(device_->info().planned_local_memory_bytes, 48 * kib);
    const auto planned_with = [&](const char* parameters) {
        device_.reset();
        device_ = std::move(*driver_->open(0, SpaceId{1}, parameters));
        EXPECT_EQ(device_->info().code.local_memory_bytes, 228 * kib) << parameters;
        return device_->info().planned_local_memory_bytes;
    };
    EXPECT_EQ(planned_with("local_memory=100K"), 100 * kib);
    EXPECT_EQ(planned_with("local_memory=1G"), 228 * kib);
    EXPECT_EQ(planned_with("local_memory=1K"), 48 * kib);  // a device of OpenCL has at least 32 KiB
}

TEST_F(CudaDriver, CodeThatCudaRefusesFailsWithItsLog) {
    driver::TargetCode code;
    code.code = "nonsense";
    code.entry = "kernel";
    const auto refused = device_->load(code);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().detail().find("ptxas error: line 1: unknown directive"), std::string_view::npos);
    EXPECT_NE(refused.error().detail().find("CUDA_ERROR_INVALID_PTX"), std::string_view::npos);
}

TEST_F(CudaDriver, AKernelWithMorePrivateMemoryThanAThreadHasIsRefused) {
    const auto load = [&](uint64_t bytes) {
        const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry kernel()\n{\n"
                                 " .local .align 8 .b8 depot[" +
                                 std::to_string(bytes) + "];\n ret;\n}\n";
        driver::TargetCode code;
        code.code = text;
        code.entry = "kernel";
        return device_->load(code);
    };
    const auto most = load(512 << 10);
    ASSERT_TRUE(most.has_value());
    EXPECT_EQ((*most)->limits().private_bytes_per_work_item, 512u << 10);
    const auto refused = load((512 << 10) + 8);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().status(), Status::out_of_resources);
    EXPECT_NE(refused.error().detail().find("private memory"), std::string_view::npos);
}

class MemoryCache final : public CodeCache {
public:
    MemoryCache() { install(this); }
    MemoryCache(const MemoryCache&) = delete;
    MemoryCache& operator=(const MemoryCache&) = delete;
    ~MemoryCache() override { install(nullptr); }
    std::optional<std::string> load(Parts parts) override {
        const auto found = entries.find({parts.begin(), parts.end()});
        return found == entries.end() ? std::nullopt : std::optional(found->second);
    }
    void store(Parts parts, std::string_view bytes) override { entries[{parts.begin(), parts.end()}] = bytes; }

    std::map<std::vector<std::string>, std::string> entries;
};

class CudaCodeCache : public CudaDriver {
protected:
    // Loads the same kernel again and executes it; returns how often CUDA has compiled it.
    uint64_t compilations() {
        const uint64_t before = calls_("cuLinkComplete");
        const auto kernel = device_->load(code_);
        EXPECT_TRUE(kernel.has_value());
        if (kernel) {
            const DeviceBytes memory(*device_, 4096);
            const auto queue = make_queue();
            const CountVisits arguments{memory.at().value};
            const std::array<std::byte, 1> zero{};
            static_cast<void>(queue->fill({memory.at(), 4096, zero}, {}));
            static_cast<void>(queue->launch(launch_of(**kernel, arguments), {}));
            Bytes seen(4);
            const Timepoint done = download(*queue, seen, memory.at());
            queue->wait(done.value);
            EXPECT_EQ(queue->status(done.value), Status::success);
            EXPECT_EQ(seen[0], std::byte{1});
        }
        return calls_("cuLinkComplete") - before;
    }
    void reopen() {
        device_.reset();
        auto opened = driver_->open(0, SpaceId{1}, "");
        ASSERT_TRUE(opened.has_value());
        device_ = std::move(*opened);
    }
    const driver::TargetCode code_ = fake_cuda::code_of({.function = CountVisits::run});
    MemoryCache cache_;
};

TEST_F(CudaCodeCache, MachineCodeIsKept) {
    EXPECT_EQ(compilations(), 1u);
    ASSERT_EQ(cache_.entries.size(), 1u);
    EXPECT_EQ(compilations(), 0u);
    reopen();
    EXPECT_EQ(compilations(), 0u);
    EXPECT_EQ(cache_.entries.size(), 1u);
}

TEST_F(CudaCodeCache, DamagedMachineCodeIsCompiledAgainAndReplaced) {
    EXPECT_EQ(compilations(), 1u);
    ASSERT_EQ(cache_.entries.size(), 1u);
    std::string& kept = cache_.entries.begin()->second;
    const std::string whole = kept;
    kept.back() ^= 1;
    EXPECT_EQ(compilations(), 1u);
    EXPECT_EQ(kept, whole);
    EXPECT_EQ(compilations(), 0u);
}

TEST_F(CudaCodeCache, AnotherVersionOfTheDriverHasMachineCodeOfItsOwn) {
    EXPECT_EQ(compilations(), 1u);
    const auto set_version = fake_cuda::find<fake_cuda::SetVersion>("fake_cuda_set_version");
    set_version(12050);
    reopen();
    EXPECT_EQ(compilations(), 1u);
    EXPECT_EQ(cache_.entries.size(), 2u);
    set_version(12040);
    reopen();
    EXPECT_EQ(compilations(), 0u);
}

TEST_F(CudaCodeCache, RefusedCodeIsNotKept) {
    driver::TargetCode code;
    code.code = "nonsense";
    code.entry = "kernel";
    const auto refused = device_->load(code);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().detail().find("ptxas error: line 1: unknown directive"), std::string_view::npos);
    EXPECT_TRUE(cache_.entries.empty());
    fail_next_("cuLinkComplete", 2);
    EXPECT_FALSE(device_->load(code_).has_value());
    EXPECT_TRUE(cache_.entries.empty());
    EXPECT_EQ(compilations(), 1u);
}

// CUDA's compiler would use more registers for the first one.
TEST_F(CudaCodeCache, WorkGroupSizesAreRequiredOnlyOfKernelsThatWouldHaveTooManyRegisters) {
    const auto kept_for = [&](const std::string& sizes) {
        std::string text = ".version 7.8\n.target sm_90\n.address_size 64\n";
        for (const char* const entry : {"first", "second"})
            text += ".visible .entry " + std::string(entry) + "(\n\t.param .b64 p\n)\n" + (*entry == 's' ? sizes : "") +
                    "{\n\tret;\n}\n";
        driver::TargetCode code;
        code.code = text;
        code.entry = "second";
        cache_.entries.clear();
        EXPECT_TRUE(device_->load(code).has_value());
        return cache_.entries.empty() ? std::string{} : cache_.entries.begin()->second;
    };
    EXPECT_NE(kept_for("").find("second"), std::string::npos);
    EXPECT_EQ(kept_for(".reqntid 8, 4, 2\n").find("reqntid"), std::string::npos);
    // A kernel of the fake GPU without the directive has at most 1,024 threads.
    EXPECT_NE(kept_for(".reqntid 64, 8, 4\n").find("reqntid 64, 8, 4"), std::string::npos);
}

TEST_F(CudaDriver, AChainOfFailedOperationsNeedsNoMemoryForEach) {
    test::FailedQueue other;
    const auto queue = make_queue();
    Timepoint last{&other, 1};
    constexpr uint64_t operations = 100'000;
    const size_t before = mallinfo2().uordblks;
    for (uint64_t i = 0; i < operations; ++i) {
        const std::array waits{last};
        last = queue->marker({waits});
        if (i % 1000 == 0)
            queue->wait(last.value);
    }
    queue->wait(last.value);
    EXPECT_LT(mallinfo2().uordblks, before + (size_t{1} << 20));
    for (uint64_t value = 1; value <= operations; ++value)
        ASSERT_EQ(queue->status(value), Status::exec_status_error_for_events_in_wait_list);
    const Timepoint independent = queue->marker({});
    queue->wait(independent.value);
    EXPECT_EQ(queue->status(independent.value), Status::success);
}

// A stream is idle for some microseconds at each write.
TEST_F(CudaDriver, TheCounterIsWrittenSeldomInALongRow) {
    const auto queue = make_queue();
    const auto writes_of = [&](int operations) {
        const uint64_t before = calls_("cuStreamWriteValue64_v2");
        Timepoint last;
        for (int i = 0; i < operations; ++i)
            last = queue->marker({});
        queue->wait(last.value);
        return calls_("cuStreamWriteValue64_v2") - before;
    };
    // After 64, 128, 256 and 512 operations, twice after 1,024, and at the end.
    EXPECT_EQ(writes_of(64 + 128 + 256 + 512 + 2 * 1024 + 1), 7u);
    // From the beginning after a wait.
    EXPECT_EQ(writes_of(64 + 1), 2u);
}

TEST_F(CudaDriver, ALinkIsAsFarAsCudaRanksItAndAsFastAsItsKind) {
    const auto peer = std::move(*driver_->open(1, SpaceId{2}, ""));
    const auto link = device_->peer_copy()->link(SpaceId{2});
    ASSERT_TRUE(link.has_value());
    EXPECT_EQ(link->hops, 1u);
    EXPECT_EQ(link->bytes_per_second, 450'000'000'000u);
}

TEST_F(CudaDriver, AListOfPeerCopiesIsOneOperation) {
    const auto peer = std::move(*driver_->open(1, SpaceId{2}, ""));
    const DeviceBytes from(*peer, 4096);
    const DeviceBytes to(*device_, 4096);
    const auto queue = make_queue();
    std::vector<CopyOperation> list;
    for (uint64_t i = 0; i < 16; ++i)
        list.push_back({device_end(from.at(256 * i)), device_end(to.at(256 * i)), {256, 1, 1}});
    const uint64_t before = calls_("cuMemcpyDtoDAsync_v2");
    const Timepoint copied = device_->peer_copy()->copy_all(*queue, SpaceId{2}, list, {});
    EXPECT_EQ(copied.value, 1u);
    queue->wait(copied.value);
    EXPECT_EQ(calls_("cuMemcpyDtoDAsync_v2") - before, 16u);
}

// --- waits for other drivers' queues ---

TEST_F(CudaDriver, BehindAFenceNoThreadWaits) {
    const auto threads_of_the_driver = [] {
        uint32_t count = 0;
        for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
            std::string name;
            std::ifstream(thread.path() / "comm") >> name;
            count += name == "polder-cuda";
        }
        return count;
    };
    FencedQueue other{FencedQueue::Fences::call};
    const auto queue = make_queue();
    const DeviceBytes memory(*device_, 64);
    const std::byte pattern{7};
    Timepoint last;
    for (uint64_t i = 1; i <= 10; ++i) {
        const std::array waits{Timepoint{&other, i}};
        last = queue->fill({memory.at(), 64, {&pattern, 1}}, {waits});
    }
    queue->flush();
    for (uint64_t i = 1; i <= 10; ++i) {
        other.reach(i);
        while (queue->completed() < i)
            std::this_thread::yield();
    }
    EXPECT_TRUE(last.is_complete());
    EXPECT_EQ(other.notified(), 10u);
    EXPECT_EQ(other.waiting_threads(), 0u);
    EXPECT_EQ(threads_of_the_driver(), 0u);
}

TEST_F(CudaDriver, WithoutAFenceAThreadWaits) {
    FencedQueue other{FencedQueue::Fences::refuse};
    const auto queue = make_queue();
    const std::array waits{Timepoint{&other, 1}};
    const Timepoint point = queue->marker({waits});
    queue->flush();
    while (other.waiting_threads() == 0)
        std::this_thread::yield();
    other.reach(1);
    while (!point.is_complete())
        std::this_thread::yield();
}

TEST_F(CudaDriver, WaitsBetweenItsQueuesAreEvents) {
    const auto first = make_queue();
    const auto second = make_queue();
    const uint64_t before = calls_("cuStreamWaitEvent");
    const auto kernel = *device_->load(fake_cuda::code_of({.function = CountVisits::run}));
    const DeviceBytes out(*device_, 4);
    const std::array<std::byte, 4> zero{};
    const CountVisits arguments{out.at().value};
    const driver::LaunchOperation operation = launch_of(*kernel, arguments);
    Timepoint last = first->fill({out.at(), 4, zero}, {});
    constexpr uint32_t launches = 200;
    for (uint32_t i = 0; i < launches; ++i) {
        const std::array waits{last};
        last = (i % 2 ? first : second)->launch(operation, {waits});
    }
    last.queue->wait(last.value);
    uint32_t visits = 0;
    last.queue->wait(last.queue->copy({device_end(out.at()), host_end(&visits), {4, 1, 1}}, {}).value);
    EXPECT_EQ(visits, launches);
    EXPECT_GT(calls_("cuStreamWaitEvent"), before);
}

TEST_F(CudaDriver, TheGpuWritesTheTimelineSeldom) {
    const auto queue = make_queue();
    const uint64_t before = calls_("cuStreamWriteValue64_v2");
    for (int i = 0; i < 1000; ++i)
        static_cast<void>(queue->marker({}));
    queue->wait(1000);
    EXPECT_EQ(queue->completed(), 1000u);
    EXPECT_LE(calls_("cuStreamWriteValue64_v2") - before, 20u);
}

TEST_F(CudaDriver, ACommandThatIsRefusedFailsAloneAndTheQueueGoesOn) {
    const auto queue = make_queue();
    const auto kernel = *device_->load(fake_cuda::code_of({.function = CountVisits::run}));
    const DeviceBytes out(*device_, 4);
    const CountVisits arguments{out.at().value};
    const Timepoint before = queue->marker({});
    fail_next_("cuLaunchKernel", 701);  // too many resources requested
    const Timepoint refused = queue->launch(launch_of(*kernel, arguments), {});
    const Timepoint after = queue->marker({});
    queue->wait(after.value);
    EXPECT_EQ(queue->status(before.value), Status::success);
    EXPECT_EQ(queue->status(refused.value), Status::out_of_resources);
    EXPECT_EQ(queue->status(after.value), Status::success);
}

TEST_F(CudaDriver, NoMemoryToPinIsAnErrorOfTheCopyOrWaitedFor) {
    const auto queue = make_queue();
    const DeviceBytes there(*device_, 100);
    const Bytes in = random_bytes(100, 1);
    fail_next_("cuMemHostAlloc", 2);
    queue->wait(upload(*queue, there.at(), in).value);
    Bytes out(100);
    queue->wait(download(*queue, out, there.at()).value);
    EXPECT_EQ(in, out);
}

TEST_F(CudaDriver, MemoryThatCannotBeMappedIsNotReserved) {
    const ByteCount before = device_->available_memory();
    fail_next_("cuMemSetAccess", 2);
    EXPECT_FALSE(device_->reserve_memory(ByteCount{1}).has_value());
    fail_next_("cuMemCreate", 2);
    EXPECT_FALSE(device_->reserve_memory(ByteCount{1}).has_value());
    EXPECT_EQ(device_->available_memory(), before);
}

TEST_F(CudaDriver, CommandsThatWaitForTheHostLeaveOtherQueuesGoing) {
    const auto blocked = make_queue();
    const auto waiting = make_queue();
    const auto free_queue = make_queue();
    Gate gate;
    const std::array waits{blocked->call({Gate::pass, &gate}, {})};
    const Timepoint behind = waiting->marker({waits});
    waiting->flush();
    blocked->flush();
    gate.wait_until_reached();
    free_queue->wait(free_queue->marker({}).value);
    EXPECT_FALSE(behind.is_complete());
    gate.open();
    waiting->wait(behind.value);
}

TEST_F(CudaDriver, ALostGpuFailsWhatWaitsAndWhatComesLater) {
    const auto device = std::move(*driver_->open(1, SpaceId{2}, ""));
    const auto queue = *device->create_queue(driver::QueueRole::compute);
    const Timepoint good = queue->marker({});
    queue->wait(good.value);
    testing::internal::CaptureStderr();
    fake_cuda::find<fake_cuda::LoseDevice>("fake_cuda_lose_device")(1);
    const Timepoint lost = queue->marker({});
    queue->flush();
    queue->wait(lost.value);
    EXPECT_TRUE(lost.is_complete());
    const Timepoint later = queue->marker({});
    queue->wait(later.value);
    EXPECT_EQ(queue->status(good.value), Status::success);
    EXPECT_EQ(queue->status(lost.value), Status::out_of_resources);
    EXPECT_EQ(queue->status(later.value), Status::out_of_resources);
    EXPECT_FALSE(device->create_queue(driver::QueueRole::compute).has_value());
    EXPECT_NE(testing::internal::GetCapturedStderr().find("Fake GPU 1 is lost"), std::string::npos);
    // The other GPU goes on.
    const auto other = make_queue();
    other->wait(other->marker({}).value);
    EXPECT_EQ(other->status(1), Status::success);
}

TEST_F(CudaDriver, InTheChildOfAForkEverythingFailsAndNothingHangs) {
    const auto queue = make_queue();
    queue->wait(queue->marker({}).value);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        const Timepoint point = queue->marker({});
        queue->flush();
        queue->wait(point.value);
        _exit(queue->status(point.value) == Status::out_of_resources ? 3 : 4);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 3);
    queue->wait(queue->marker({}).value);
    EXPECT_EQ(queue->status(2), Status::success);
}

TEST(CudaLibrary, WithoutItThereAreNoDevices) {
    // The loader has read LD_LIBRARY_PATH already, so this takes a new process.
    if (!std::getenv("POLDER_TEST_WITHOUT_CUDA")) {
        const std::string command = "POLDER_TEST_WITHOUT_CUDA=1 LD_LIBRARY_PATH=/nonexistent POCL_DEBUG=driver /proc/" +
                                    std::to_string(getpid()) +
                                    "/exe --gtest_filter=CudaLibrary.* 2>&1 | grep -c 'no CUDA device: ' >/dev/null";
        EXPECT_EQ(std::system(command.c_str()), 0);
        return;
    }
    EXPECT_EQ(driver_named("cuda")->count(), 0u);
}

TEST(CudaLibrary, WithoutAGpuThereAreNoDevices) {
    if (!std::getenv("POLDER_TEST_WITHOUT_GPU")) {
        const std::string command = "POLDER_TEST_WITHOUT_GPU=1 FAKE_CUDA_DEVICES=0 POCL_DEBUG=driver /proc/" +
                                    std::to_string(getpid()) + "/exe --gtest_filter=CudaLibrary.WithoutAGpu* 2>&1";
        FILE* const child = popen(command.c_str(), "r");
        ASSERT_NE(child, nullptr);
        std::string output;
        char part[256];
        while (std::fgets(part, sizeof part, child))
            output += part;
        EXPECT_EQ(pclose(child), 0) << output;
        const size_t line = output.find("no CUDA device: cuInit");
        EXPECT_NE(line, std::string::npos) << output;
        EXPECT_EQ(output.find("no CUDA device: ", line + 1), std::string::npos) << output;
        return;
    }
    EXPECT_EQ(driver_named("cuda")->count(), 0u);
}

TEST(CudaLibrary, OfAnOldDriverHasNoDevices) {
    const auto set_version = fake_cuda::find<fake_cuda::SetVersion>("fake_cuda_set_version");
    ASSERT_NE(set_version, nullptr) << "this is not the fake libcuda";
    set_version(11060);
    const auto old = driver_named("cuda");
    EXPECT_EQ(old->count(), 0u);
    const auto none = old->open(0, SpaceId{1}, "");
    set_version(12040);
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().status(), Status::device_not_found);
    EXPECT_NE(none.error().detail().find("CUDA 11.6, at least 11.7"), std::string_view::npos) << none.error().detail();
    EXPECT_EQ(driver_named("cuda")->count(), 2u);
}

}  // namespace
}  // namespace polder::conformance
