// ExternalMemory: bytes behind a file descriptor that the application has imported (cl_khr_external_memory), mapped into the process.
//
// The mapping is the host replica of a memory object's storage, as application memory is of CL_MEM_USE_HOST_PTR. The memory object keeps it
// until its storage is destroyed and no command uses it. The descriptor stays the application's, which may close it after the import.
// Immutable after it was imported; any thread. Sizes in bytes.
#pragma once

#include <base/ref.h>
#include <runtime/device.h>

#include <cstddef>
#include <polder/result.h>
#include <polder/types.h>
#include <vector>

namespace polder::runtime {

class ExternalMemory final : public RefCounted {
public:
    // opaque_fd: a file that can be mapped as shared memory (memfd_create, shm_open), or a dma-buf. dma_buf: a dma-buf alone.
    enum class Type : uint8_t { opaque_fd, dma_buf };
    enum class Protection : uint8_t { read, read_write };
    struct Source {
        Type type;
        int descriptor;
        std::vector<Ref<Device>> devices;  // that the object is for; empty: all of the context
    };

    // Never waits, whatever the descriptor is. invalid_property: no open descriptor, or one of another kind, or the mapping is not
    // permitted. invalid_buffer_size: it has less than `size` bytes. out_of_host_memory.
    [[nodiscard]] static Result<Ref<ExternalMemory>> import(Source source, ByteCount size, Protection protection);
    ~ExternalMemory() override;

    [[nodiscard]] std::byte* bytes() const { return bytes_; }
    [[nodiscard]] bool is_for(const Device& device) const;
    // Only a dma-buf: the processor's accesses to its bytes begin and end with calls of begin_access and end_access. They may wait for
    // other users of the dma-buf.
    [[nodiscard]] bool needs_access_calls() const { return dma_buf_ >= 0; }
    void begin_access() const noexcept;
    void end_access() const noexcept;

private:
    ExternalMemory(std::byte* bytes, ByteCount size, Protection protection, std::vector<Ref<Device>> devices)
        : bytes_(bytes), size_(size), protection_(protection), devices_(std::move(devices)) {}
    void synchronize(uint64_t flags) const noexcept;

    std::byte* const bytes_;
    const ByteCount size_;
    const Protection protection_;
    const std::vector<Ref<Device>> devices_;
    int dma_buf_ = -1;  // a descriptor of our own
};

}  // namespace polder::runtime
