// The pool of host memory against malloc: create, first use (64 bytes), release.
#include <memory/block_pool.h>

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace polder::memory {
namespace {

constexpr Alignment alignment{128};
constexpr size_t used_bytes = 64;

void PoolUse(benchmark::State& state) {
    const auto pool = make_host_allocator({});
    const ByteCount size{static_cast<uint64_t>(state.range(0))};
    for (auto _ : state) {
        const auto block = pool->allocate(size, alignment);
        std::memset(block->address.host(), 1, used_bytes);
        benchmark::ClobberMemory();
        pool->free(*block, {});
    }
}

void MallocUse(benchmark::State& state) {
    const auto size = static_cast<size_t>(state.range(0));
    for (auto _ : state) {
        void* block = std::aligned_alloc(alignment.value, size);
        std::memset(block, 1, used_bytes);
        benchmark::ClobberMemory();
        std::free(block);
    }
}

// Many live buffers, each created and used; then all are released.
void PoolMany(benchmark::State& state) {
    const auto pool = make_host_allocator({});
    std::vector<Block> blocks(static_cast<size_t>(state.range(0)));
    for (auto _ : state) {
        for (Block& block : blocks) {
            block = *pool->allocate(ByteCount{4096}, alignment);
            std::memset(block.address.host(), 1, used_bytes);
        }
        for (const Block& block : blocks)
            pool->free(block, {});
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(PoolUse)->Arg(4 << 10)->Arg(1 << 20)->Arg(64 << 20);
BENCHMARK(MallocUse)->Arg(4 << 10)->Arg(1 << 20)->Arg(64 << 20);
BENCHMARK(PoolMany)->Arg(1000)->Arg(20'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace polder::memory

BENCHMARK_MAIN();
