// Small copies and fills run on the calling thread. Large ones are divided into blocks, which several threads copy. Large transfers use
// stores that bypass the cache. A fill writes its pattern to a block once, and copies this block.
#include <algorithm>
#include <cstring>
#include <host/bulk.h>
#include <host/stream_copy.h>

namespace polder::devices {
namespace {

// Units of work for several threads; large enough to be worth an atomic operation, and a multiple of
// every fill pattern's size.
constexpr uint64_t block_bytes = uint64_t{256} * 1024;
// More threads do not increase the bandwidth on the processors that were measured.
constexpr uint32_t copying_threads_max = 16;

void run_blocks(WorkerPool& pool, Workspace& workspace, ParallelTask::Shape shape, void* context,
                ParallelTask::Run run) {
    shape.threads_max = std::min(pool.width(), copying_threads_max);
    ParallelTask task(shape, context, run);
    pool.run(task, workspace);
}

struct Bytes {
    std::byte* to;
    const std::byte* from;
    uint64_t size;
};

using CopyFunction = void (*)(std::byte* to, const std::byte* from, uint64_t size);

// The copy function for one block of a transfer of this size.
CopyFunction copy_function(uint64_t transfer_bytes) {
    return exceeds_caches(transfer_bytes) ? stream_copy : cached_copy;
}

void copy_bytes(const Bytes& bytes, WorkerPool& pool, Workspace& workspace, PooledQueue* queue) {
    if (bytes.size < bulk_parallel_bytes || pool.width() == 1) {
        cached_copy(bytes.to, bytes.from, bytes.size);
        return;
    }
    const auto run = [](void* context, UnitRange blocks, Workspace&) {
        const Bytes& all = *static_cast<const Bytes*>(context);
        const uint64_t begin = blocks.begin * block_bytes;
        const uint64_t end = std::min(blocks.end * block_bytes, all.size);
        copy_function(all.size)(all.to + begin, all.from + begin, end - begin);
    };
    Bytes all = bytes;
    run_blocks(pool, workspace, {.units = {0, (bytes.size + block_bytes - 1) / block_bytes}, .queue = queue}, &all,
               run);
}

void copy_rows(const CopyRecord& copy, UnitRange rows) {
    uint64_t y = rows.begin % copy.shape.rows;
    uint64_t z = rows.begin / copy.shape.rows;
    for (uint64_t i = rows.begin; i < rows.end; ++i) {
        cached_copy(copy.to + y * copy.to_layout.row_pitch + z * copy.to_layout.slice_pitch,
                    copy.from + y * copy.from_layout.row_pitch + z * copy.from_layout.slice_pitch,
                    copy.shape.row_bytes);
        if (++y == copy.shape.rows) {
            y = 0;
            ++z;
        }
    }
}

bool is_contiguous(const driver::RectShape& shape, const driver::RectLayout& layout) {
    return (shape.rows == 1 || layout.row_pitch == shape.row_bytes) &&
           (shape.slices == 1 || layout.slice_pitch == shape.row_bytes * shape.rows);
}

// The pattern, repeated over a block that is then copied.
class RepeatedPattern {
public:
    RepeatedPattern(const std::byte* pattern, uint32_t pattern_bytes) {
        std::memcpy(block_, pattern, pattern_bytes);
        for (size_t filled = pattern_bytes; filled < sizeof block_; filled *= 2)
            std::memcpy(block_ + filled, block_, filled);
    }
    void write(std::byte* to, uint64_t size, CopyFunction copy) const {
        for (uint64_t done = 0; done < size; done += sizeof block_)
            copy(to + done, block_, std::min<uint64_t>(sizeof block_, size - done));
    }

private:
    alignas(64) std::byte block_[2048];
};

// Fills one block of a fill.
void fill_block(const FillRecord& fill, std::byte* to, uint64_t size) {
    const std::byte* const pattern = fill.pattern;
    const bool stream = exceeds_caches(fill.size);
    const bool uniform =
        std::all_of(pattern, pattern + fill.pattern_bytes, [pattern](std::byte byte) { return byte == pattern[0]; });
    if (uniform && !stream) {
        std::memset(to, std::to_integer<int>(pattern[0]), size);
    } else if (size <= 256) {
        for (uint64_t done = 0; done < size; done += fill.pattern_bytes)
            std::memcpy(to + done, pattern, fill.pattern_bytes);
    } else {
        RepeatedPattern(pattern, fill.pattern_bytes).write(to, size, copy_function(fill.size));
    }
}

}  // namespace

void execute_bulk_copy(const CopyRecord& copy, WorkerPool& pool, Workspace& workspace) {
    const driver::RectShape& shape = copy.shape;
    const uint64_t rows = shape.rows * shape.slices;
    const uint64_t total = shape.row_bytes * rows;
    if (is_contiguous(shape, copy.from_layout) && is_contiguous(shape, copy.to_layout)) {
        copy_bytes({copy.to, copy.from, total}, pool, workspace, copy.queue);
        return;
    }
    if (total < bulk_parallel_bytes || pool.width() == 1) {
        copy_rows(copy, {0, rows});
        return;
    }
    const auto run = [](void* context, UnitRange units, Workspace&) {
        copy_rows(*static_cast<const CopyRecord*>(context), units);
    };
    run_blocks(
        pool, workspace,
        {.units = {0, rows}, .chunk_min = std::max<uint64_t>(1, block_bytes / shape.row_bytes), .queue = copy.queue},
        const_cast<CopyRecord*>(&copy), run);
}

void execute_bulk_fill(const FillRecord& fill, WorkerPool& pool, Workspace& workspace) {
    if (fill.size < bulk_parallel_bytes || pool.width() == 1) {
        fill_block(fill, fill.to, fill.size);
        return;
    }
    const auto run = [](void* context, UnitRange blocks, Workspace&) {
        const auto& all = *static_cast<const FillRecord*>(context);
        const uint64_t begin = blocks.begin * block_bytes;
        const uint64_t end = std::min(blocks.end * block_bytes, all.size);
        fill_block(all, all.to + begin, end - begin);
    };
    run_blocks(pool, workspace, {.units = {0, (fill.size + block_bytes - 1) / block_bytes}, .queue = fill.queue},
               const_cast<FillRecord*>(&fill), run);
}

}  // namespace polder::devices
