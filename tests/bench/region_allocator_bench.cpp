// bufalloc against a plain first-fit list, in one run: the cost of an allocate/free pair with a given number
// of live blocks, and the share of the region in use that random work reaches.
//
// LastFreed: one more block is allocated and freed again, as a buffer that lives for one command.
// Random: a random live block is replaced by one of another random size, as in a long-running program.
#include <bufalloc/region_allocator.h>

#include <benchmark/benchmark.h>
#include <cstdint>
#include <list>
#include <optional>
#include <random>
#include <vector>

namespace polder {
namespace {

constexpr uint64_t size_max = 64 * 1024;
constexpr Alignment alignment{128};

// The simplest allocator: the blocks in a list in order of address, the first free one that fits is taken.
class FirstFit {
public:
    struct Entry {
        uint64_t offset;
        uint64_t size;
        bool is_free;
    };
    using Block = std::list<Entry>::iterator;

    explicit FirstFit(uint64_t size) { entries_.push_back({0, size, true}); }
    std::optional<Block> allocate(ByteCount size) {
        const uint64_t bytes = alignment.round_up(size.value);
        for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
            if (!entry->is_free || entry->size < bytes)
                continue;
            if (entry->size > bytes)
                entries_.insert(std::next(entry), {entry->offset + bytes, entry->size - bytes, true});
            entry->size = bytes;
            entry->is_free = false;
            return entry;
        }
        return std::nullopt;
    }
    void free(Block entry) {
        entry->is_free = true;
        if (const auto next = std::next(entry); next != entries_.end() && next->is_free) {
            entry->size += next->size;
            entries_.erase(next);
        }
        if (entry != entries_.begin() && std::prev(entry)->is_free) {
            std::prev(entry)->size += entry->size;
            entries_.erase(entry);
        }
    }

private:
    std::list<Entry> entries_;
};

class Bufalloc {
public:
    using Block = RegionAllocator::Block;
    explicit Bufalloc(uint64_t size) : allocator_({DeviceAddress{0}, ByteCount{size}, alignment}) {}
    std::optional<Block> allocate(ByteCount size) { return allocator_.allocate(size, alignment); }
    void free(const Block& block) { allocator_.free(block); }

private:
    RegionAllocator allocator_;
};

// A region with `count` live blocks of random sizes in about two thirds of it, with holes from earlier ones.
template <class Allocator>
struct Worn {
    explicit Worn(uint64_t count) : allocator(count * size_max * 3 / 4 + size_max) {
        for (uint64_t i = 0; i < count; ++i)
            blocks.push_back(*allocator.allocate(size()));
        for (uint64_t i = 0; i < count; ++i)
            replace(i);
    }
    ByteCount size() { return ByteCount{1 + random() % size_max}; }
    void replace(size_t which) {
        allocator.free(blocks[which]);
        auto block = allocator.allocate(size());
        while (!block)
            block = allocator.allocate(size());
        blocks[which] = *block;
    }

    std::minstd_rand random;
    Allocator allocator;
    std::vector<typename Allocator::Block> blocks;
};

template <class Allocator>
void LastFreed(benchmark::State& state) {
    Worn<Allocator> worn(static_cast<uint64_t>(state.range(0)));
    for (auto _ : state) {
        if (const auto block = worn.allocator.allocate(worn.size()))
            worn.allocator.free(*block);
    }
}

// The same with one size, as the bare cost of a pair.
template <class Allocator>
void LastFreedSameSize(benchmark::State& state) {
    Worn<Allocator> worn(static_cast<uint64_t>(state.range(0)));
    for (auto _ : state) {
        if (const auto block = worn.allocator.allocate(ByteCount{4096}))
            worn.allocator.free(*block);
    }
}

template <class Allocator>
void Random(benchmark::State& state) {
    Worn<Allocator> worn(static_cast<uint64_t>(state.range(0)));
    const size_t count = worn.blocks.size();
    for (auto _ : state)
        worn.replace(worn.random() % count);
}

// How full a region of 64 MiB stays: it is filled, then over and over a random block is freed and random ones are
// allocated until one is refused. `used_percent` is the mean share in use, as asked for, at those refusals;
// `first_refusal_percent` that at the very first. Time is of no interest here.
template <class Allocator>
void Fill(benchmark::State& state) {
    constexpr uint64_t region_bytes = uint64_t{64} << 20;
    double first = 0, all = 0, refusals = 0;
    for (auto _ : state) {
        Allocator allocator(region_bytes);
        std::minstd_rand random(static_cast<uint32_t>(state.iterations() + 1));
        std::vector<std::pair<typename Allocator::Block, uint64_t>> blocks;
        uint64_t used = 0;
        const auto fill = [&] {
            for (;;) {
                const uint64_t size = 1 + random() % static_cast<uint64_t>(state.range(0));
                const auto block = allocator.allocate(ByteCount{size});
                if (!block)
                    return 100.0 * static_cast<double>(used) / static_cast<double>(region_bytes);
                blocks.emplace_back(*block, size);
                used += size;
            }
        };
        first += fill();
        for (int step = 0; step < 20'000; ++step) {
            std::swap(blocks[random() % blocks.size()], blocks.back());
            allocator.free(blocks.back().first);
            used -= blocks.back().second;
            blocks.pop_back();
            all += fill();
            ++refusals;
        }
    }
    state.counters["first_refusal_percent"] = first / static_cast<double>(state.iterations());
    state.counters["used_percent"] = all / refusals;
}

BENCHMARK(Fill<Bufalloc>)->Arg(64 << 10)->Arg(1 << 20)->Iterations(5)->Unit(benchmark::kMillisecond);
BENCHMARK(Fill<FirstFit>)->Arg(64 << 10)->Arg(1 << 20)->Iterations(5)->Unit(benchmark::kMillisecond);
BENCHMARK(LastFreed<Bufalloc>)->Arg(10)->Arg(1000)->Arg(100'000);
BENCHMARK(LastFreed<FirstFit>)->Arg(10)->Arg(1000)->Arg(10'000);
BENCHMARK(LastFreedSameSize<Bufalloc>)->Arg(10)->Arg(1000)->Arg(100'000);
BENCHMARK(Random<Bufalloc>)->Arg(10)->Arg(1000)->Arg(100'000);
BENCHMARK(Random<FirstFit>)->Arg(10)->Arg(1000)->Arg(10'000);

// What the two draws of a random number and the indirection cost by themselves.
void RandomNumbersAlone(benchmark::State& state) {
    std::minstd_rand random;
    std::vector<uint64_t> values(static_cast<size_t>(state.range(0)));
    for (auto _ : state)
        values[random() % values.size()] += 1 + random() % size_max;
    benchmark::DoNotOptimize(values);
}
BENCHMARK(RandomNumbersAlone)->Arg(10)->Arg(1000)->Arg(100'000);

} // namespace
} // namespace polder

BENCHMARK_MAIN();
