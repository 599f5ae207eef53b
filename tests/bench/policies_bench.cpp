// Every allocation policy over made-up memory: nanoseconds for a pair of lease and free, with up to a million live
// blocks around, and with two threads.
//
// With many live blocks, the processor's caches do not hold them. So `floor` is the time to change one word in the cache line of
// a block, in the same order of blocks, and `of_floor` is the pair's time divided by it.
#include <memory/allocation_policy.h>
#include <memory/allocator.h>
#include <memory/region_source.h>

#include <algorithm>
#include <atomic>
#include <benchmark/benchmark.h>
#include <ctime>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace polder::memory {
namespace {

class MadeUpSource final : public RegionSource {
public:
    Result<driver::Memory> reserve(ByteCount size) override {
        const driver::Memory memory{DeviceAddress{next_.fetch_add(size.value)}, size.value};
        return memory;
    }
    void release(driver::Memory) override {}
    ByteCount preferred_size(ByteCount needed, ByteCount reserved) const override {
        return std::max({needed, reserved, ByteCount{uint64_t{64} << 20}});
    }
    ByteCount available() const override { return ByteCount{uint64_t{1} << 46}; }

private:
    std::atomic<uint64_t> next_{uint64_t{1} << 40};
};

constexpr const char* settings[] = {"backend:bufalloc", "backend:caching", "backend:bucket"};

std::unique_ptr<Allocator> make(int64_t policy) {
    AllocatorOptions options;
    options.space = SpaceId{1};
    return make_allocator(parse_policy(settings[policy], "").policy, std::make_unique<MadeUpSource>(), options);
}

struct alignas(64) Line {
    uint64_t next = 0;  // always 0: each access waits for the one before
};

// Processor time of the calling thread, so that other processes do not count.
double processor_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Nanoseconds to change one word of lines[place], for each place.
double floor_ns(std::vector<Line>& lines, const std::vector<uint32_t>& order) {
    constexpr size_t rounds = 64;
    uint64_t offset = 0;
    double begin = 0;
    for (size_t round = 0; round <= rounds; ++round) {
        if (round == 1)  // the first one fills the caches
            begin = processor_ns();
        for (const uint32_t place : order) {
            uint64_t& word = lines[place + offset].next;
            offset = word;
            benchmark::DoNotOptimize(word);
        }
    }
    return (processor_ns() - begin) / static_cast<double>(rounds * order.size());
}

// Random sizes of 1 KiB to 256 KiB. Blocks are replaced in random order, so that free ones lie everywhere.
void Pair(benchmark::State& state) {
    const auto pool = make(state.range(0));
    std::mt19937_64 random(1);
    std::vector<uint64_t> sizes(4096);
    for (uint64_t& size : sizes)
        size = 1024 + random() % (255 * 1024);
    std::vector<Block> blocks(static_cast<size_t>(state.range(1)));
    for (size_t i = 0; i < blocks.size(); ++i)
        blocks[i] = *pool->allocate(ByteCount{sizes[i % sizes.size()]}, Alignment{128});
    std::vector<uint32_t> order(4096);
    for (uint32_t& place : order)
        place = static_cast<uint32_t>(random() % blocks.size());
    size_t next = 0;
    const double begin = processor_ns();
    for (auto _ : state) {
        Block& block = blocks[order[next % order.size()]];
        pool->free(block, {});
        block = *pool->allocate(ByteCount{sizes[(next * 7) % sizes.size()]}, Alignment{128});
        ++next;
    }
    const double time = processor_ns() - begin;
    for (const Block& block : blocks)
        pool->free(block, {});
    std::vector<Line> lines(blocks.size());
    state.counters["floor"] = floor_ns(lines, order);
    state.counters["of_floor"] =
        time / static_cast<double>(state.iterations()) / static_cast<double>(state.counters["floor"]);
    state.SetLabel(settings[state.range(0)] + 8);
}

// The same size again and again, on each thread. `time` and items_per_second are elapsed; `cpu_ns` is the processor's time for a pair, and
// `pairs_per_cpu_s` the sum of what each thread makes in a second of its own processor time: without other work on the machine, and
// with a processor for each thread, both rates are the same.
void Threads(benchmark::State& state) {
    static std::unique_ptr<Allocator> pool;
    if (state.thread_index() == 0)
        pool = make(state.range(0));
    double begin = 0;
    for (auto _ : state) {
        if (begin == 0) [[unlikely]]  // the other threads have begun, too
            begin = processor_ns();
        const auto block = pool->allocate(ByteCount{uint64_t{4096} << state.thread_index()}, Alignment{128});
        pool->free(*block, {});
    }
    const double pair_ns = (processor_ns() - begin) / static_cast<double>(state.iterations());
    state.SetItemsProcessed(state.iterations());
    state.counters["cpu_ns"] = benchmark::Counter(pair_ns, benchmark::Counter::kAvgThreads);
    state.counters["pairs_per_cpu_s"] = 1e9 / pair_ns;
    state.SetLabel(settings[state.range(0)] + 8);
}

BENCHMARK(Pair)->ArgsProduct({{0, 1, 2}, {1, 1000, 100'000, 1'000'000}});
BENCHMARK(Threads)->DenseRange(0, 2)->ThreadRange(1, 4)->UseRealTime();

}  // namespace
}  // namespace polder::memory

// A second thread waits in all of it: the C library's locks are cheaper in processes that have had one thread alone.
int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    std::atomic<bool> is_done{false};
    std::thread idle([&] { is_done.wait(false); });
    benchmark::RunSpecifiedBenchmarks();
    is_done = true;
    is_done.notify_all();
    idle.join();
    return 0;
}
