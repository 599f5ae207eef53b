// The number of threads and the size of the pieces follow from the copy's size: a thread costs 10 us or more until it is awake.
#include <cstring>
#include <cuda/backoff.h>
#include <cuda/copy_threads.h>
#include <cuda/enqueue_copy.h>
#include <cuda/refusals.h>
#include <cuda/staged_copy.h>
#include <host/stream_copy.h>
#include <new>
#include <optional>

namespace polder::cuda {
namespace {

using Place = driver::CopyOperation::Place;

constexpr uint64_t piece_bytes_min = uint64_t{256} << 10;
constexpr uint64_t page_bytes = 4096;

uint64_t bytes_of(const driver::CopyOperation& copy) {
    return copy.shape.row_bytes * copy.shape.rows * copy.shape.slices;
}

uint64_t threads_for(const driver::CopyOperation& copy, const Parameters& parameters) {
    const uint64_t bytes = bytes_of(copy);
    if (bytes < parallel_bytes)
        return 1;
    const uint64_t most = parameters.copy_threads != 0 ? parameters.copy_threads : copy_threads();
    return std::clamp<uint64_t>(bytes / piece_bytes_min, 1, most);
}

// Several pieces for each thread, so that all end at about the same time; whole chunks when the copy is large.
uint64_t piece_bytes_for(const driver::CopyOperation& copy, const Parameters& parameters, uint64_t threads) {
    const uint64_t share = bytes_of(copy) / (threads * parameters.copy_chunks);
    const uint64_t most = parameters.copy_chunk_bytes;
    return std::clamp(share / page_bytes * page_bytes, std::min(piece_bytes_min, most), most);
}

}  // namespace

StagedCopy::StagedCopy(CudaContext& context, StagingPool& staging, Stream stream, const driver::CopyOperation& copy,
                       FunctionRef<bool()> is_over)
    : context_(context), staging_(staging), stream_(stream), copy_(copy), is_over_(is_over),
      threads_(threads_for(copy, staging.parameters())),
      pieces_(copy, piece_bytes_for(copy, staging.parameters(), threads_)) {}

Code StagedCopy::run() {
    run_on_copy_threads(std::min(threads_, pieces_.count()), [this] { take_part(); });
    return failure_.load();
}

void StagedCopy::take_part() {
    if (next_.load(std::memory_order_relaxed) >= pieces_.count())
        return;
    const CudaContext::Current current(context_);
    std::vector<StagingChunk> chunks;
    try {
        chunks.reserve(staging_.parameters().copy_chunks);
        take_chunks(chunks);
        if (!chunks.empty())
            take_part_with(chunks);
    } catch (const std::bad_alloc&) {
        // No exception may leave a thread of the pool.
        static_cast<void>(note(code_out_of_memory));
    }
    for (const StagingChunk& chunk : chunks)
        staging_.give_back(chunk, stream_);
}

void StagedCopy::take_part_with(std::span<const StagingChunk> chunks) {
    threads_with_chunks_.fetch_add(1);
    if (copy_.from.place == Place::host)
        copy_in(chunks);
    else
        copy_out(chunks);
}

// --- chunks and pieces ---

void StagedCopy::take_chunks(std::vector<StagingChunk>& chunks) {
    constexpr int refusals_max = 16;
    int refusals = 0;
    Backoff backoff;
    while (chunks.size() < staging_.parameters().copy_chunks) {
        const StagingPool::Taken taken = staging_.take();
        if (taken.chunk.memory) {
            chunks.push_back(taken.chunk);
            continue;
        }
        // A thread that has a chunk waits for no other one, nor does one whose copy other threads work on.
        if (!chunks.empty() || threads_with_chunks_.load() != 0)
            return;
        // When no thread has a chunk, none will be given back.
        if ((taken.in_use == 0 && ++refusals == refusals_max) || is_over_()) {
            static_cast<void>(note(code_out_of_memory));
            return;
        }
        backoff.pause();
    }
}

std::optional<uint64_t> StagedCopy::take_piece() {
    if (failure_.load(std::memory_order_relaxed) != code_success)
        return std::nullopt;
    const uint64_t piece = next_.fetch_add(1, std::memory_order_relaxed);
    return piece < pieces_.count() ? std::optional(piece) : std::nullopt;
}

bool StagedCopy::note(Code code) {
    if (code == code_success)
        return true;
    Code expected = code_success;
    failure_.compare_exchange_strong(expected, code);
    return false;
}

Code StagedCopy::wait_for(FunctionRef<Code()> query, FunctionRef<bool()> is_hopeless) {
    Backoff backoff;
    Refusals refusals;
    for (;;) {
        if (context_.is_lost())
            return code_out_of_memory;
        const Code code = query();
        if (code == code_success || refusals.are_final_after(code))
            return code;
        if (backoff.has_slept() && is_hopeless())
            return code_out_of_memory;
        backoff.pause();
    }
}

// The chunk may have been another queue's, whose stream does not go on.
Code StagedCopy::wait_until_unused(const StagingChunk& chunk) {
    return wait_for([&] { return context_.api.event_query(chunk.used); },
                    [&] { return is_over_() || staging_.is_discarded(chunk); });
}

Code StagedCopy::wait_until_idle() {
    return wait_for([&] { return context_.api.stream_query(stream_); }, is_over_);
}

// --- to the device ---

void StagedCopy::copy_in(std::span<const StagingChunk> chunks) {
    for (size_t turn = 0;; ++turn) {
        const std::optional<uint64_t> piece = take_piece();
        if (!piece || !note(fill(chunks[turn % chunks.size()], pieces_[*piece])))
            return;
    }
}

Code StagedCopy::fill(const StagingChunk& chunk, const CopyPiece& piece) {
    if (const Code code = wait_until_unused(chunk))
        return code;
    const std::byte* const from = copy_.from.address.host() + piece.from_offset;
    for (uint64_t y = 0; y < piece.rows; ++y)
        copy_bytes(chunk.memory + y * piece.row_bytes, from + y * copy_.from.layout.row_pitch, piece.row_bytes);
    return enqueue(chunk, piece);
}

// --- from the device ---

// As many pieces as the thread has chunks are on their way; the oldest one is copied to where it belongs.
void StagedCopy::copy_out(std::span<const StagingChunk> chunks) {
    std::vector<uint64_t> arriving(chunks.size());
    size_t started = 0;
    for (size_t finished = 0;; ++finished) {
        while (started - finished < chunks.size()) {
            const std::optional<uint64_t> piece = take_piece();
            if (!piece)
                break;
            const size_t place = started % chunks.size();
            arriving[place] = *piece;
            if (!note(start(chunks[place], pieces_[*piece])))
                return;
            ++started;
        }
        const size_t place = finished % chunks.size();
        if (finished == started || !note(finish(chunks[place], pieces_[arriving[place]])))
            return;
    }
}

Code StagedCopy::start(const StagingChunk& chunk, const CopyPiece& piece) {
    // By another copy, that is, when the chunk was just taken.
    if (const Code code = wait_until_unused(chunk))
        return code;
    return enqueue(chunk, piece);
}

Code StagedCopy::finish(const StagingChunk& chunk, const CopyPiece& piece) {
    if (const Code code = wait_until_unused(chunk))
        return code;
    std::byte* const to = copy_.to.address.host() + piece.to_offset;
    for (uint64_t y = 0; y < piece.rows; ++y)
        copy_bytes(to + y * copy_.to.layout.row_pitch, chunk.memory + y * piece.row_bytes, piece.row_bytes);
    return code_success;
}

// --- both ---

Code StagedCopy::enqueue(const StagingChunk& chunk, const CopyPiece& piece) {
    driver::CopyOperation part = copy_;
    const driver::CopyOperation::End pinned{Place::host, DeviceAddress::of(chunk.memory), {piece.row_bytes, 0}};
    if (copy_.from.place == Place::host) {
        part.from = pinned;
        part.to.address = copy_.to.address.plus(piece.to_offset);
    } else {
        part.from.address = copy_.from.address.plus(piece.from_offset);
        part.to = pinned;
    }
    part.shape = {piece.row_bytes, piece.rows, 1};
    const Code code = enqueue_copy(context_.api, stream_, part);
    const Code recorded = context_.api.event_record(chunk.used, stream_);
    // The chunk's event would seem to be complete: no other copy may use the chunk until this one is done.
    if (recorded == code_success)
        return code;
    const Code idle = wait_until_idle();
    return code == code_success ? idle : code;
}

// Around the caches where several threads copy: the bytes are not read from this processor's cache.
void StagedCopy::copy_bytes(std::byte* to, const std::byte* from, uint64_t size) const {
    if (threads_ > 1 && size >= page_bytes)
        devices::stream_copy(to, from, size);
    else
        std::memcpy(to, from, size);
}

}  // namespace polder::cuda
