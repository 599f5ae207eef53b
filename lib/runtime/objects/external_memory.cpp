// Maps descriptors, or copies files that may become smaller. fstat and fstatfs look at a descriptor without opening or reading it, so
// FIFOs and devices are refused without waiting.
#include <base/log.h>
#include <runtime/external_memory.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace polder::runtime {
namespace {

// The kind and the size of a descriptor's contents.
struct Content {
    bool is_dma_buf;
    uint64_t size;
};

Result<Content> content_of(int descriptor) {
    struct stat status{};
    struct statfs system{};
    if (fstat(descriptor, &status) != 0 || fstatfs(descriptor, &system) != 0)
        return fail(Status::invalid_property, "external memory: not an open file descriptor");
    if (static_cast<uint64_t>(system.f_type) == DMA_BUF_MAGIC) {
        // Seeks to the end, because fstat does not report the size of a dma-buf in all kernels. A dma-buf's position has no other meaning.
        const off_t end = lseek(descriptor, 0, SEEK_END);
        return Content{true, end < 0 ? 0 : static_cast<uint64_t>(end)};
    }
    if (!S_ISREG(status.st_mode))
        return fail(Status::invalid_property, "external memory: the file descriptor is not one of memory");
    return Content{false, static_cast<uint64_t>(status.st_size)};
}

// Seals the file against becoming smaller. False when it cannot be sealed: only files of memfd_create with MFD_ALLOW_SEALING can.
bool seal_size(int descriptor) {
    const int seals = fcntl(descriptor, F_GET_SEALS);
    return seals >= 0 && ((seals & F_SEAL_SHRINK) != 0 || fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
}

// Calls transfer(byte, count, offset) until all of `bytes` are transferred or it fails. Returns how many were.
template <class Transfer>
size_t transfer_all(std::byte* bytes, size_t size, Transfer transfer) {
    size_t done = 0;
    while (done < size) {
        const ssize_t count = transfer(bytes + done, size - done, static_cast<off_t>(done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        done += static_cast<size_t>(count);
    }
    return done;
}

}  // namespace

Result<ExternalMemory::Kind> ExternalMemory::kind_of(const Source& source, ByteCount size) {
    POLDER_ASSIGN(content, content_of(source.descriptor));
    if (source.type == Type::dma_buf && !content.is_dma_buf)
        return fail(Status::invalid_property, "external memory: the file descriptor is not one of a dma-buf");
    const bool sealed = !content.is_dma_buf && size.value <= content.size && seal_size(source.descriptor);
    if (sealed) {
        POLDER_ASSIGN(after, content_of(source.descriptor));  // it may have become smaller before it was sealed
        content = after;
    }
    if (size.value > content.size)
        return fail(Status::invalid_buffer_size,
                    "external memory: the file descriptor has fewer bytes than the object");
    return content.is_dma_buf ? Kind::dma_buf : sealed ? Kind::mapped_file : Kind::copied_file;
}

Result<Ref<ExternalMemory>> ExternalMemory::import(Source source, ByteCount size, Protection protection) {
    POLDER_ASSIGN(kind, kind_of(source, size));
    const int access = protection == Protection::read ? PROT_READ : PROT_READ | PROT_WRITE;
    void* mapped = mmap(nullptr, size.value, access, MAP_SHARED, source.descriptor, 0);
    // A file that is copied was only mapped to find out whether that is permitted. Memory of the process replaces the mapping.
    if (mapped != MAP_FAILED && kind == Kind::copied_file) {
        munmap(mapped, size.value);
        mapped = mmap(nullptr, size.value, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (mapped == MAP_FAILED)
        return errno == ENOMEM
                   ? fail(Status::out_of_host_memory, "external memory: no address space")
                   : fail(Status::invalid_property, "external memory: the file descriptor cannot be mapped");
    auto memory = Ref<ExternalMemory>::adopt(
        new ExternalMemory(kind, static_cast<std::byte*>(mapped), size, protection, std::move(source.devices)));
    if (kind != Kind::mapped_file) {
        memory->descriptor_ = fcntl(source.descriptor, F_DUPFD_CLOEXEC, 0);
        if (memory->descriptor_ < 0)
            return fail(Status::out_of_resources, "external memory: no file descriptor is left");
    }
    if (kind == Kind::copied_file)
        memory->read_file();
    return memory;
}

ExternalMemory::~ExternalMemory() {
    munmap(bytes_, size_.value);
    if (descriptor_ >= 0)
        close(descriptor_);
}

bool ExternalMemory::is_for(const Device& device) const {
    return devices_.empty() ||
           std::ranges::any_of(devices_, [&](const Ref<Device>& each) { return each.get() == &device; });
}

void ExternalMemory::begin_access() const noexcept {
    kind_ == Kind::dma_buf ? synchronize(DMA_BUF_SYNC_START) : read_file();
}

void ExternalMemory::end_access() const noexcept {
    kind_ == Kind::dma_buf ? synchronize(DMA_BUF_SYNC_END) : write_file();
}

void ExternalMemory::read_file() const noexcept {
    const size_t done = transfer_all(bytes_, size_.value, [&](std::byte* to, size_t count, off_t from) {
        return pread(descriptor_, to, count, from);
    });
    if (done < size_.value) {
        POLDER_LOG(memory, "external memory: the file has %zu bytes, the object %zu; the others are zero", done,
                   static_cast<size_t>(size_.value));
        std::memset(bytes_ + done, 0, size_.value - done);
    }
}

// Does not write beyond the file's end, because that would make the file larger.
void ExternalMemory::write_file() const noexcept {
    struct stat status{};
    if (protection_ == Protection::read || fstat(descriptor_, &status) != 0)
        return;
    const size_t size = std::min<size_t>(size_.value, static_cast<size_t>(status.st_size));
    const size_t done = transfer_all(bytes_, size, [&](const std::byte* from, size_t count, off_t to) {
        return pwrite(descriptor_, from, count, to);
    });
    if (done < size_.value)
        POLDER_LOG(memory, "external memory: of %zu bytes, %zu were written to the file",
                   static_cast<size_t>(size_.value), done);
}

void ExternalMemory::synchronize(uint64_t flags) const noexcept {
    dma_buf_sync request{flags | (protection_ == Protection::read ? DMA_BUF_SYNC_READ : DMA_BUF_SYNC_RW)};
    int result = 0;
    do {
        result = ioctl(descriptor_, DMA_BUF_IOCTL_SYNC, &request);
    } while (result != 0 && (errno == EINTR || errno == EAGAIN));
    if (result != 0)
        POLDER_LOG(memory, "external memory: DMA_BUF_IOCTL_SYNC failed: %s", strerrordesc_np(errno));
}

}  // namespace polder::runtime
