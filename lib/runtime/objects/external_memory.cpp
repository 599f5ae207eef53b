// Maps descriptors. fstat and fstatfs look at a descriptor without opening or reading it, so FIFOs and devices are refused without waiting.
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

// Of a descriptor that can be mapped.
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
        // fstat does not say the size of a dma-buf in all kernels. Its position counts for nothing else.
        const off_t end = lseek(descriptor, 0, SEEK_END);
        return Content{true, end < 0 ? 0 : static_cast<uint64_t>(end)};
    }
    if (!S_ISREG(status.st_mode))
        return fail(Status::invalid_property, "external memory: the file descriptor is not one of memory");
    return Content{false, static_cast<uint64_t>(status.st_size)};
}

}  // namespace

Result<Ref<ExternalMemory>> ExternalMemory::import(Source source, ByteCount size, Protection protection) {
    POLDER_ASSIGN(content, content_of(source.descriptor));
    if (source.type == Type::dma_buf && !content.is_dma_buf)
        return fail(Status::invalid_property, "external memory: the file descriptor is not one of a dma-buf");
    if (size.value > content.size)
        return fail(Status::invalid_buffer_size,
                    "external memory: the file descriptor has fewer bytes than the object");
    const int access = protection == Protection::read ? PROT_READ : PROT_READ | PROT_WRITE;
    void* const mapped = mmap(nullptr, size.value, access, MAP_SHARED, source.descriptor, 0);
    if (mapped == MAP_FAILED)
        return errno == ENOMEM
                   ? fail(Status::out_of_host_memory, "external memory: no address space")
                   : fail(Status::invalid_property, "external memory: the file descriptor cannot be mapped");
    auto memory = Ref<ExternalMemory>::adopt(
        new ExternalMemory(static_cast<std::byte*>(mapped), size, protection, std::move(source.devices)));
    if (content.is_dma_buf) {
        memory->dma_buf_ = fcntl(source.descriptor, F_DUPFD_CLOEXEC, 0);
        if (memory->dma_buf_ < 0)
            return fail(Status::out_of_resources, "external memory: no file descriptor is left");
    }
    return memory;
}

ExternalMemory::~ExternalMemory() {
    munmap(bytes_, size_.value);
    if (dma_buf_ >= 0)
        close(dma_buf_);
}

bool ExternalMemory::is_for(const Device& device) const {
    return devices_.empty() ||
           std::ranges::any_of(devices_, [&](const Ref<Device>& each) { return each.get() == &device; });
}

void ExternalMemory::begin_access() const noexcept { synchronize(DMA_BUF_SYNC_START); }

void ExternalMemory::end_access() const noexcept { synchronize(DMA_BUF_SYNC_END); }

void ExternalMemory::synchronize(uint64_t flags) const noexcept {
    dma_buf_sync request{flags | (protection_ == Protection::read ? DMA_BUF_SYNC_READ : DMA_BUF_SYNC_RW)};
    int result = 0;
    do {
        result = ioctl(dma_buf_, DMA_BUF_IOCTL_SYNC, &request);
    } while (result != 0 && (errno == EINTR || errno == EAGAIN));
    if (result != 0)
        POLDER_LOG(memory, "external memory: DMA_BUF_IOCTL_SYNC failed: %s", strerrordesc_np(errno));
}

}  // namespace polder::runtime
