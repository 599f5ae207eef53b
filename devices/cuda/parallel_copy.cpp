#include <algorithm>
#include <cstring>
#include <cuda/parallel_copy.h>
#include <host/processors.h>
#include <host/stream_copy.h>
#include <host/worker_pool.h>

namespace polder::cuda {
namespace {

// Below this, one thread is done before another is awake.
constexpr uint64_t parallel_bytes = uint64_t{512} << 10;
constexpr uint64_t unit_bytes = uint64_t{256} << 10;
constexpr size_t threads_max = 8;

devices::WorkerPool& pool() {
    // Leaked: its threads may be at work while the process exits.
    static auto* const all = [] {
        devices::WorkerPoolOptions options;
        options.thread_name = "polder-copy";
        options.places.resize(std::clamp<size_t>(devices::usable_processors().size() / 2, 1, threads_max));
        return new devices::WorkerPool(std::move(options));
    }();
    return *all;
}

struct Bytes {
    std::byte* to;
    const std::byte* from;
    uint64_t size;
};

} // namespace

void parallel_copy(std::byte* to, const std::byte* from, uint64_t size) {
    if (size < parallel_bytes || pool().width() == 1) {
        std::memcpy(to, from, size);
        return;
    }
    Bytes bytes{to, from, size};
    const auto run = [](void* context, devices::UnitRange units, devices::Workspace&) {
        const Bytes& all = *static_cast<const Bytes*>(context);
        const uint64_t begin = units.begin * unit_bytes;
        const uint64_t end = std::min(units.end * unit_bytes, all.size);
        // Nobody reads the bytes from this processor's cache.
        devices::stream_copy(all.to + begin, all.from + begin, end - begin);
    };
    devices::ParallelTask task({.units = {0, (size + unit_bytes - 1) / unit_bytes}, .threads_max = pool().width()},
                               &bytes, run);
    devices::Workspace unused(devices::heap_local_memory());
    pool().run(task, unused);
}

} // namespace polder::cuda
