#include <algorithm>
#include <cstring>
#include <cuda/copy_threads.h>
#include <host/processors.h>
#include <host/stream_copy.h>
#include <host/worker_pool.h>

namespace polder::cuda {
namespace {

constexpr uint64_t unit_bytes = uint64_t{256} << 10;
// The threads for all copies together, and the most for one copy: two GPUs may copy in both directions at once.
constexpr size_t pool_threads_max = 16;
constexpr uint64_t threads_max = 8;

devices::WorkerPool& pool() {
    // Never destroyed, because its threads may be working while the process exits.
    static auto* const all = [] {
        devices::WorkerPoolOptions options;
        options.thread_name = "polder-copy";
        options.places.resize(std::clamp<size_t>(devices::usable_processors().size() / 2, 1, pool_threads_max));
        return new devices::WorkerPool(std::move(options));
    }();
    return *all;
}

struct Bytes {
    std::byte* to;
    const std::byte* from;
    uint64_t size;
};

void run_on_pool(uint64_t units, uint64_t threads, void* context, devices::ParallelTask::Run run) {
    devices::ParallelTask task({.units = {0, units}, .threads_max = static_cast<uint32_t>(threads)}, context, run);
    devices::Workspace unused(devices::heap_local_memory());
    pool().run(task, unused);
}

}  // namespace

uint64_t copy_threads() { return std::min<uint64_t>(pool().width(), threads_max); }

void run_on_copy_threads(uint64_t threads, FunctionRef<void()> part) {
    if (threads <= 1)
        return part();
    run_on_pool(threads, threads, &part, [](void* context, devices::UnitRange units, devices::Workspace&) {
        for (uint64_t i = units.begin; i < units.end; ++i)
            (*static_cast<FunctionRef<void()>*>(context))();
    });
}

void parallel_copy(std::byte* to, const std::byte* from, uint64_t size) {
    if (size < parallel_bytes || pool().width() == 1) {
        std::memcpy(to, from, size);
        return;
    }
    Bytes bytes{to, from, size};
    run_on_pool((size + unit_bytes - 1) / unit_bytes, copy_threads(), &bytes,
                [](void* context, devices::UnitRange units, devices::Workspace&) {
                    const Bytes& all = *static_cast<const Bytes*>(context);
                    const uint64_t begin = units.begin * unit_bytes;
                    const uint64_t end = std::min(units.end * unit_bytes, all.size);
                    // Bypasses the cache, because the bytes will not be read by this processor.
                    devices::stream_copy(all.to + begin, all.from + begin, end - begin);
                });
}

}  // namespace polder::cuda
