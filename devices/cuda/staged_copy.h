// StagedCopy: one copy between pageable host memory and a GPU, through pinned chunks.
//
// The copy is cut into pieces, and several threads take one piece after the other, until none is left. Each thread has chunks of its own:
// it copies bytes between one chunk and the host's memory while the GPU copies the others, and it waits only for its own chunks. So
// no thread waits for the slowest one before the next pieces begin, and the link is idle only when all threads are too slow for it.
//
// Owned by the thread that executes the copy. All pieces go to one stream, in any order; nothing else goes to it meanwhile. After a
// failure, pieces may be on the stream.
#pragma once

#include <base/function_ref.h>

#include <atomic>
#include <cuda/copy_pieces.h>
#include <cuda/pinned_memory.h>

namespace polder::cuda {

class StagedCopy {
public:
    // `copy` is from host memory to the device or from the device to host memory. The queue is lost when `is_over` says so.
    StagedCopy(CudaContext& context, StagingPool& staging, Stream stream, const driver::CopyOperation& copy,
               FunctionRef<bool()> is_over);
    StagedCopy(const StagedCopy&) = delete;
    StagedCopy& operator=(const StagedCopy&) = delete;

    // A copy from the device is complete when this returns. Of a copy to the device, everything is in the stream.
    [[nodiscard]] Code run();

private:
    // What one thread does.
    void take_part();
    void take_part_with(std::span<const StagingChunk> chunks);
    void copy_in(std::span<const StagingChunk> chunks);
    void copy_out(std::span<const StagingChunk> chunks);
    [[nodiscard]] Code fill(const StagingChunk& chunk, const CopyPiece& piece);
    [[nodiscard]] Code start(const StagingChunk& chunk, const CopyPiece& piece);
    [[nodiscard]] Code finish(const StagingChunk& chunk, const CopyPiece& piece);
    [[nodiscard]] Code enqueue(const StagingChunk& chunk, const CopyPiece& piece);
    [[nodiscard]] Code wait_until_unused(const StagingChunk& chunk);
    [[nodiscard]] Code wait_until_idle();
    // Calls `query` until it returns success, or other codes than "not ready" for some time.
    [[nodiscard]] Code wait_for(FunctionRef<Code()> query, FunctionRef<bool()> is_hopeless);
    void copy_bytes(std::byte* to, const std::byte* from, uint64_t size) const;
    // Takes the chunks for one thread; none when there are no free chunks and other threads of the copy have some.
    void take_chunks(std::vector<StagingChunk>& chunks);
    // The number of a piece that no thread has taken; std::nullopt when there is none, or a piece has failed.
    [[nodiscard]] std::optional<uint64_t> take_piece();
    [[nodiscard]] bool note(Code code);  // false: failed

    CudaContext& context_;
    StagingPool& staging_;
    const Stream stream_;
    const driver::CopyOperation& copy_;
    const FunctionRef<bool()> is_over_;
    const uint64_t threads_;
    const CopyPieces pieces_;
    std::atomic<uint64_t> next_{0};
    std::atomic<uint32_t> threads_with_chunks_{0};
    std::atomic<Code> failure_{code_success};
};

}  // namespace polder::cuda
