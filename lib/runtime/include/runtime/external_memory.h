// ExternalMemory: bytes behind a file descriptor that the application has imported (cl_khr_external_memory).
//
// The bytes are the host replica of a memory object's storage, like application memory with CL_MEM_USE_HOST_PTR. The memory object keeps them
// until its storage is destroyed and no command uses it. The application still owns the descriptor, and may close it after the import.
//
// A process that accesses a mapping beyond the end of a file gets SIGBUS. So a file is mapped only when it is sealed against becoming
// smaller (F_SEAL_SHRINK); an import adds that seal if the file permits it. The bytes of any other file are copied: an acquire
// reads the file, a release writes it, and bytes beyond its end are zero and are not written.
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
        std::vector<Ref<Device>> devices;  // the devices that may use the object; empty: all of the context
    };

    // Does not wait for other users of the descriptor. invalid_property: the descriptor is not open or of another kind, or must not be
    // mapped. invalid_buffer_size: it has fewer than `size` bytes. out_of_host_memory: no memory or address space.
    // If the file is copied, reads its bytes.
    [[nodiscard]] static Result<Ref<ExternalMemory>> import(Source source, ByteCount size, Protection protection);
    ~ExternalMemory() override;

    [[nodiscard]] std::byte* bytes() const { return bytes_; }
    [[nodiscard]] bool is_for(const Device& device) const;
    // False for a mapped file. Otherwise the host must call begin_access before and end_access after its accesses to the bytes. These
    // functions may wait for other users of a dma-buf, or for the input and output of a file.
    [[nodiscard]] bool needs_access_calls() const { return descriptor_ >= 0; }
    void begin_access() const noexcept;
    void end_access() const noexcept;

private:
    enum class Kind : uint8_t { mapped_file, copied_file, dma_buf };
    ExternalMemory(Kind kind, std::byte* bytes, ByteCount size, Protection protection, std::vector<Ref<Device>> devices)
        : kind_(kind), bytes_(bytes), size_(size), protection_(protection), devices_(std::move(devices)) {}
    static Result<Kind> kind_of(const Source& source, ByteCount size);
    void synchronize(uint64_t flags) const noexcept;
    void read_file() const noexcept;
    void write_file() const noexcept;

    const Kind kind_;

    std::byte* const bytes_;
    const ByteCount size_;
    const Protection protection_;
    const std::vector<Ref<Device>> devices_;
    int descriptor_ = -1;  // a duplicate of the application's; -1 for a mapped file
};

}  // namespace polder::runtime
