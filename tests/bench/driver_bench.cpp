// What the executor of host-executed queues costs: empty launches, batches, chains through two queues, and bulk
// copies beside one thread's memcpy in the same run.
#include <devices/drivers.h>

#include <array>
#include <benchmark/benchmark.h>
#include <cstring>
#include <memory>
#include <vector>

namespace {

using namespace polder;

class CpuQueue {
public:
    CpuQueue() {
        driver_ = devices::all_drivers()[0].make();
        device_ = *driver_->open(0, host_space, {});
        queue_ = *device_->create_queue(driver::QueueRole::compute);
        other_ = *device_->create_queue(driver::QueueRole::compute);
        kernel_ = *device_->load(driver::HostCode{
            .function = [](const std::byte*, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {}});
    }
    [[nodiscard]] driver::Queue& queue() { return *queue_; }
    [[nodiscard]] driver::Queue& other() { return *other_; }
    [[nodiscard]] driver::LaunchOperation launch(uint64_t groups) {
        driver::LaunchOperation operation;
        operation.kernel = kernel_.get();
        operation.global_size[0] = groups;
        operation.arguments = arguments_;
        return operation;
    }

private:
    std::unique_ptr<driver::Driver> driver_;
    std::unique_ptr<driver::Device> device_;
    std::unique_ptr<driver::Queue> queue_;
    std::unique_ptr<driver::Queue> other_;
    std::unique_ptr<driver::LoadedKernel> kernel_;
    std::array<std::byte, 24> arguments_{};
};

void launch_and_wait(benchmark::State& state) {
    CpuQueue cpu;
    const auto operation = cpu.launch(static_cast<uint64_t>(state.range(0)));
    for (auto _ : state)
        cpu.queue().wait(cpu.queue().launch(operation, {}).value);
}
BENCHMARK(launch_and_wait)->ArgName("groups")->Arg(1)->Arg(16)->Arg(1000);

void submit_batch(benchmark::State& state) {
    CpuQueue cpu;
    const auto operation = cpu.launch(1);
    const int64_t count = state.range(0);
    for (auto _ : state) {
        driver::Timepoint last;
        for (int64_t i = 0; i < count; ++i)
            last = cpu.queue().launch(operation, {});
        cpu.queue().wait(last.value);
    }
    state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(submit_batch)->ArgName("launches")->Arg(100)->Arg(20000)->UseRealTime();

void chain_through_two_queues(benchmark::State& state) {
    CpuQueue cpu;
    const auto operation = cpu.launch(1);
    constexpr int64_t count = 10000;
    for (auto _ : state) {
        driver::Timepoint last;
        for (int64_t i = 0; i < count; ++i)
            last = (i % 2 ? cpu.queue() : cpu.other()).launch(operation, driver::Submission{{&last, 1}});
        last.queue->wait(last.value);
    }
    state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(chain_through_two_queues)->UseRealTime();

// Alternating with one thread's memcpy, so that the ratio holds on a noisy machine.
void bulk_copy(benchmark::State& state) {
    CpuQueue cpu;
    const auto size = static_cast<uint64_t>(state.range(0));
    std::vector<std::byte> from(size, std::byte{1});
    std::vector<std::byte> to(size, std::byte{2});
    using Place = driver::CopyOperation::Place;
    const driver::CopyOperation copy{{Place::host, DeviceAddress::of(from.data()), {}},
                                     {Place::device, DeviceAddress::of(to.data()), {}},
                                     {size, 1, 1}};
    double ours_s = 0;
    double memcpy_s = 0;
    const auto seconds = [] {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    };
    for (auto _ : state) {
        const double begin = seconds();
        cpu.queue().wait(cpu.queue().copy(copy, {}).value);
        const double middle = seconds();
        std::memcpy(to.data(), from.data(), size);
        benchmark::ClobberMemory();
        const double end = seconds();
        state.SetIterationTime(middle - begin);
        ours_s += middle - begin;
        memcpy_s += end - middle;
    }
    state.counters["memcpy_ratio"] = memcpy_s / ours_s;
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(bulk_copy)->ArgName("bytes")->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20)->Arg(256 << 20)->UseManualTime();

void bulk_fill(benchmark::State& state) {
    CpuQueue cpu;
    const auto size = static_cast<uint64_t>(state.range(0));
    std::vector<std::byte> to(size, std::byte{2});
    const std::array<uint32_t, 1> pattern{0x12345678};
    for (auto _ : state)
        cpu.queue().wait(
            cpu.queue().fill({DeviceAddress::of(to.data()), size, std::as_bytes(std::span{pattern})}, {}).value);
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(bulk_fill)->ArgName("bytes")->Arg(64)->Arg(1 << 20)->Arg(256 << 20)->UseRealTime();

} // namespace

BENCHMARK_MAIN();
