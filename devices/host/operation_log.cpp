// Records are allocated one after another in chunks, which form a list. The submitting thread appends records. The executing thread takes
// records and puts used chunks into a free list; the submitting thread takes all free chunks at once.
#include <algorithm>
#include <host/operation_log.h>

namespace polder::devices {

struct alignas(OperationLog::record_alignment) OperationLog::Chunk {
    Chunk* next_spare = nullptr;
    size_t capacity = 0;

    std::byte* begin() { return reinterpret_cast<std::byte*>(this + 1); }
    static Chunk* of_first(Operation* record) { return reinterpret_cast<Chunk*>(record) - 1; }
    static void free(Chunk* chunk) { ::operator delete(chunk, std::align_val_t{record_alignment}); }
    static void free_list(Chunk* chunk) {
        while (chunk) {
            Chunk* const next = chunk->next_spare;
            free(chunk);
            chunk = next;
        }
    }
};

namespace {

// Two chunks fit a first-level cache.
constexpr size_t chunk_bytes = size_t{16} * 1024;
// The most free chunks that a queue keeps: 1 MiB.
constexpr uint32_t spares_max = 64;

}  // namespace

OperationLog::~OperationLog() {
    Chunk::free_list(own_spares_);
    Chunk::free_list(spares_.load(std::memory_order_acquire));
    Chunk* chunk = taken_chunk_;
    if (!chunk && oldest_)
        chunk = Chunk::of_first(oldest_);
    // Records that were never taken are in the chunks from this record on.
    Operation* record = taken_ ? taken_ : oldest_;
    while (record) {
        Operation* const next = record->next;
        if (next && next->first_in_chunk) {
            Chunk::free(chunk);
            chunk = Chunk::of_first(next);
        }
        record = next;
    }
    if (chunk)
        Chunk::free(chunk);
}

OperationLog::Chunk* OperationLog::new_chunk(size_t capacity) {
    if (capacity <= chunk_bytes - sizeof(Chunk)) {
        capacity = chunk_bytes - sizeof(Chunk);
        if (!own_spares_)
            own_spares_ = spares_.exchange(nullptr, std::memory_order_acquire);
        if (own_spares_) {
            Chunk* const chunk = own_spares_;
            own_spares_ = chunk->next_spare;
            spare_count_.fetch_sub(1, std::memory_order_relaxed);
            return chunk;
        }
    }
    void* const memory = ::operator new(sizeof(Chunk) + capacity, std::align_val_t{record_alignment});
    Chunk* const chunk = new (memory) Chunk;
    chunk->capacity = capacity;
    return chunk;
}

std::byte* OperationLog::allocate(size_t bytes, bool& first) {
    bytes = (bytes + record_alignment - 1) & ~(record_alignment - 1);
    first = static_cast<size_t>(free_end_ - free_begin_) < bytes;
    if (first) {
        Chunk* const chunk = new_chunk(bytes);
        free_begin_ = chunk->begin();
        free_end_ = free_begin_ + chunk->capacity;
    }
    std::byte* const memory = free_begin_;
    free_begin_ += bytes;
    return memory;
}

void OperationLog::recycle(Chunk* chunk) {
    const bool ordinary = chunk->capacity == chunk_bytes - sizeof(Chunk);
    if (!ordinary || spare_count_.load(std::memory_order_relaxed) >= spares_max) {
        Chunk::free(chunk);
        return;
    }
    spare_count_.fetch_add(1, std::memory_order_relaxed);
    chunk->next_spare = spares_.load(std::memory_order_relaxed);
    // Only this thread pushes, and the other thread takes all chunks at once, so there is no ABA problem.
    while (!spares_.compare_exchange_weak(chunk->next_spare, chunk, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
}

Operation& OperationLog::take() {
    Operation* const record = taken_ ? taken_->next : oldest_;
    if (record->first_in_chunk) {
        if (taken_chunk_)
            recycle(taken_chunk_);
        taken_chunk_ = Chunk::of_first(record);
    }
    taken_ = record;
    return *record;
}

}  // namespace polder::devices
