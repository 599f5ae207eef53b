// What the memory layer costs per command when nothing has to move, and at first use.
//
// Queues here only count: submitting and completing cost nothing, so that the figures are the layer's own.
#include <memory/domain.h>
#include <memory/space.h>
#include <memory/storage.h>

#include <benchmark/benchmark.h>
#include <polder/driver.h>
#include <random>
#include <vector>

namespace polder::memory {
namespace {

class CountingQueue final : public driver::Queue {
public:
    driver::Timepoint copy(const driver::CopyOperation&, const driver::Submission&) override { return next(); }
    driver::Timepoint fill(const driver::FillOperation&, const driver::Submission&) override { return next(); }
    driver::Timepoint launch(const driver::LaunchOperation&, const driver::Submission&) override { return next(); }
    driver::Timepoint call(const driver::HostOperation&, const driver::Submission&) override { return next(); }
    driver::Timepoint marker(const driver::Submission&) override { return next(); }
    void flush() override {}
    void wait(uint64_t value) override { completed_.store(value); }

    // Stays `lag` operations behind, so that work is always in flight.
    driver::Timepoint next() {
        ++submitted_;
        if (submitted_ > lag)
            completed_.store(submitted_ - lag, std::memory_order_release);
        return {this, submitted_};
    }

private:
    static constexpr uint64_t lag = 16;
    uint64_t submitted_ = 0;
};

class CountingDevice final : public driver::Device {
public:
    explicit CountingDevice(SpaceId space) {
        info_.space = space;
        info_.memory_bytes = uint64_t{16} << 30;
    }
    const driver::DeviceInfo& info() const override { return info_; }
    Result<driver::Memory> reserve_memory(ByteCount size) override {
        return driver::Memory{DeviceAddress{uint64_t{1} << 44}, size.value};
    }
    void release_memory(driver::Memory) override {}
    ByteCount available_memory() const override { return ByteCount{info_.memory_bytes}; }
    Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole) override {
        return std::make_unique<CountingQueue>();
    }
    Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::KernelCode&) override {
        return fail(Status::invalid_operation);
    }
    Result<std::unique_ptr<driver::Device>> create_sub_device(std::span<const uint32_t>) override {
        return fail(Status::device_partition_failed);
    }
    uint64_t now_ns() const override { return 0; }

private:
    driver::DeviceInfo info_;
};

struct Machine {
    CountingDevice host_device{host_space};
    CountingDevice device{SpaceId{1}};
    std::unique_ptr<Space> spaces[2] = {Space::host(&host_device), Space::of(device)};
    Space* pointers[2] = {spaces[0].get(), spaces[1].get()};
    std::unique_ptr<Domain> domain = Domain::create(pointers);
    CountingQueue queue;
    CountingQueue other_queue;

    [[nodiscard]] Execution on(CountingQueue& which) { return {which, SpaceId{1}, {}}; }
    void launch(CountingQueue& which, std::span<const Use> uses) {
        benchmark::DoNotOptimize(domain->launch(
            on(which), uses, [&](driver::Waits, std::span<const DeviceAddress>) { return which.next(); }));
    }
    [[nodiscard]] Ref<Storage> storage(uint64_t bytes) {
        return Storage::create(*domain, ByteCount{bytes}, {}).value();
    }
};

// A kernel with state.range(0) arguments: the first is written, the others are read, all in place.
void kernel_in_place(benchmark::State& state) {
    Machine machine;
    std::vector<Ref<Storage>> storages;
    std::vector<Use> uses;
    for (int64_t i = 0; i < state.range(0); ++i) {
        storages.push_back(machine.storage(4096));
        uses.push_back({storages.back().get(), {0, 4096}, i == 0 ? Access::read_write : Access::read});
    }
    for (auto _ : state)
        machine.launch(machine.queue, uses);
}
BENCHMARK(kernel_in_place)->Arg(1)->Arg(3)->Arg(8);

// The same buffer used by two queues in turns.
void kernel_in_place_on_two_queues(benchmark::State& state) {
    Machine machine;
    const auto storage = machine.storage(4096);
    const Use use{storage.get(), {0, 4096}, Access::read_write};
    for (auto _ : state) {
        machine.launch(machine.queue, {&use, 1});
        machine.launch(machine.other_queue, {&use, 1});
    }
    state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(kernel_in_place_on_two_queues);

// A different one of 64 sub-buffers each time.
void kernel_on_sub_buffers(benchmark::State& state) {
    Machine machine;
    const auto storage = machine.storage(64 * 1024);
    uint64_t i = 0;
    for (auto _ : state) {
        const Use use{storage.get(), ByteRange::at((i++ % 64) * 1024, ByteCount{1024}), Access::read_write};
        machine.launch(machine.queue, {&use, 1});
    }
}
BENCHMARK(kernel_on_sub_buffers);

// A buffer of many pieces of 1 KiB: neighbours are held by the host and by the device in turns. Kernels use a random piece, with
// moves == 0 where it is held, else on the other side: then pieces are split, and merged with their neighbours, all the time.
void kernel_on_one_of_many_pieces(benchmark::State& state) {
    Machine machine;
    const auto pieces = static_cast<uint64_t>(state.range(0));
    const bool moves = state.range(1) != 0;
    const auto storage = machine.storage(pieces * 1024);
    std::vector<uint32_t> side(pieces);
    const auto launch = [&](uint64_t piece) {
        const Use use{storage.get(), ByteRange::at(piece * 1024, ByteCount{1024}), Access::read_write};
        benchmark::DoNotOptimize(machine.domain->launch(
            {machine.queue, SpaceId{side[piece]}, {}}, {&use, 1},
            [&](driver::Waits, std::span<const DeviceAddress>) { return machine.queue.next(); }));
    };
    for (const uint32_t space : {0u, 1u})
        static_cast<void>(machine.domain->reserve(*storage, SpaceId{space}));
    for (uint64_t piece = 0; piece < pieces; ++piece) {
        side[piece] = piece % 2;
        launch(piece);
    }
    std::mt19937_64 random(1);
    for (auto _ : state) {
        const uint64_t piece = random() % pieces;
        side[piece] ^= moves ? 1 : 0;
        launch(piece);
    }
}
BENCHMARK(kernel_on_one_of_many_pieces)->ArgNames({"pieces", "moves"})->ArgsProduct({{64, 4096}, {0, 1}});

void small_write(benchmark::State& state) {
    Machine machine;
    const auto storage = machine.storage(4096);
    const std::byte bytes[64]{};
    for (auto _ : state)
        benchmark::DoNotOptimize(
            machine.domain->write(machine.on(machine.queue), *storage, StorageRect::of({0, 64}), bytes, {}));
}
BENCHMARK(small_write);

// Create, reserve on the device, use, release: without what moves.
void first_use(benchmark::State& state) {
    Machine machine;
    const auto bytes = static_cast<uint64_t>(state.range(0));
    for (auto _ : state) {
        const auto storage = machine.storage(bytes);
        benchmark::DoNotOptimize(machine.domain->reserve(*storage, SpaceId{1}));
        const Use use{storage.get(), {0, bytes}, Access::read_write};
        machine.launch(machine.queue, {&use, 1});
    }
}
BENCHMARK(first_use)->Arg(4096)->Arg(64 << 20);

// The newest bytes alternate between the host and the device.
void ping_pong_planning(benchmark::State& state) {
    Machine machine;
    const auto storage = machine.storage(4096);
    const Use use{storage.get(), {0, 4096}, Access::read_write};
    for (auto _ : state) {
        for (uint32_t space : {0u, 1u}) {
            benchmark::DoNotOptimize(machine.domain->launch(
                {machine.queue, SpaceId{space}, {}}, {&use, 1},
                [&](driver::Waits, std::span<const DeviceAddress>) { return machine.queue.next(); }));
        }
    }
    state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(ping_pong_planning);

}  // namespace
}  // namespace polder::memory

BENCHMARK_MAIN();
