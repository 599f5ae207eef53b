// OperationLog: the submitted and not yet executed operations of one queue, in order.
//
// Records are appended to chunks. A chunk whose records have all been taken is filled again, so that a queue in steady
// state allocates no memory. One thread appends at a time, one thread takes at a time, and both may do so at once:
// the thread that takes must have learned by an acquiring read that the record was appended (the queue's
// `submitted` counter). Records are aligned to 64 bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <host/operation.h>
#include <memory>
#include <new>

namespace polder::devices {

class OperationLog {
public:
    static constexpr size_t record_alignment = 64;

    OperationLog() = default;
    OperationLog(const OperationLog&) = delete;
    OperationLog& operator=(const OperationLog&) = delete;
    ~OperationLog();

    // A new record, followed by `extra_bytes` (a multiple of 16) bytes. May throw std::bad_alloc.
    template <class Record>
    Record* append(size_t extra_bytes) {
        static_assert(std::is_trivially_destructible_v<Record>);
        Operation* const previous = newest_;
        bool first = false;
        auto* const record = new (allocate(sizeof(Record) + extra_bytes, first)) Record;
        record->first_in_chunk = first;
        (previous ? previous->next : oldest_) = record;
        newest_ = record;
        return record;
    }

    // Takes the oldest record. The caller has finished with the record taken before.
    [[nodiscard]] Operation& take();

private:
    struct Chunk;

    std::byte* allocate(size_t bytes, bool& first);
    Chunk* new_chunk(size_t capacity);
    void recycle(Chunk* chunk);

    // Used by the appending thread.
    Operation* newest_ = nullptr;
    std::byte* free_begin_ = nullptr;
    std::byte* free_end_ = nullptr;
    Chunk* own_spares_ = nullptr;

    // Used by the taking thread; `oldest_` is written once, by the first append.
    alignas(64) Operation* taken_ = nullptr;
    Operation* oldest_ = nullptr;
    Chunk* taken_chunk_ = nullptr;

    // Passed from the taking thread to the appending thread.
    alignas(64) std::atomic<Chunk*> spares_{nullptr};
    std::atomic<uint32_t> spare_count_{0};
};

} // namespace polder::devices
