// ProxyMemory: the memory of another implementation's device. Each region is one of its buffers. OpenCL has handles of buffers and no
// addresses, so this class gives each region a range of numbers as its addresses, where the host has no memory. An address
// then means a region and an offset. A kernel's argument is a sub-buffer from the offset to the region's end. It is made once for each
// offset and kept as long as the region, because any command may use it until the region is released.
// The same holds for images that show rows of a region.
//
// A region is written once when it is made, so that an implementation that allocates at first use fails here and not in
// a command. Any thread.
#pragma once

#include <base/mutex.h>
#include <bufalloc/region_allocator.h>

#include <map>
#include <polder/driver.h>
#include <proxy/image_argument.h>
#include <unordered_map>

namespace polder::proxy {

class ProxyMemory {
public:
    struct Place {
        cl_mem buffer = nullptr;  // of the whole region
        uint64_t offset = 0;
    };

    [[nodiscard]] static Result<std::unique_ptr<ProxyMemory>> create(ForeignContext& context,
                                                                     const driver::DeviceInfo& info);
    ProxyMemory(const ProxyMemory&) = delete;
    ProxyMemory& operator=(const ProxyMemory&) = delete;
    ~ProxyMemory();

    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size);
    void release(driver::Memory memory);
    [[nodiscard]] ByteCount available() const;

    // Of an address that was returned before.
    [[nodiscard]] Place resolve(DeviceAddress address) const;
    // The buffer that begins at `address`, for clSetKernelArg. It stays as long as `generation` is the same.
    [[nodiscard]] cl_int buffer_at(DeviceAddress address, cl_mem& buffer);
    // An image object that shows the rows at `address`, where can_show_rows. It stays as long as `generation` is the same and no 1,024 others of
    // the region have come since: until the launch is enqueued, which keeps it.
    [[nodiscard]] cl_int image_at(DeviceAddress address, const ImageArgument& argument, cl_mem& image);
    // Changes before a buffer that buffer_at has returned is released.
    [[nodiscard]] uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

private:
    struct Region {
        RegionAllocator::Block block;
        uint64_t size;
        cl_mem buffer;
        std::unordered_map<uint64_t, cl_mem> parts;  // by offset
        struct Image {
            uint64_t offset;
            ImageArgument argument;
            cl_mem image;
        };
        std::vector<Image> images;
    };
    ProxyMemory(ForeignContext& context, const driver::DeviceInfo& info, cl_command_queue queue);
    [[nodiscard]] cl_int make_buffer(uint64_t size, cl_mem& buffer);
    [[nodiscard]] cl_int part_at(Region& region, uint64_t offset, cl_mem& buffer) POLDER_REQUIRES(mutex_);
    void release_parts(Region& region) POLDER_REQUIRES(mutex_);

    ForeignContext& context_;
    const uint64_t base_;
    const uint64_t total_;
    const uint64_t allocation_max_;
    const Alignment granularity_;
    const cl_command_queue queue_;  // for what a new region needs
    mutable Mutex mutex_;
    RegionAllocator addresses_ POLDER_GUARDED_BY(mutex_);
    std::map<uint64_t, Region> regions_ POLDER_GUARDED_BY(mutex_);  // by address
    uint64_t reserved_ POLDER_GUARDED_BY(mutex_) = 0;
    std::atomic<uint64_t> generation_{1};
};

}  // namespace polder::proxy
