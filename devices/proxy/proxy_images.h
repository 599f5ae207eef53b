// ProxyImages: the images that the launches of one queue give to kernels of another implementation.
//
// An image of Polder is rows of a buffer, and kernels there take image objects. A 1D buffer image shows the rows themselves, and so does a 2D
// image where the implementation can have that (ProxyMemory::image_at). For others, and where it refuses that for a part of a buffer, a launch
// takes an image of the same shape from this pool, copies the rows into it before the kernel, and back behind a kernel that may write it. The queue executes in order, so the next launch
// may take the same images at once.
//
// Images that the pool keeps take at most `bytes_max` and those that the newest launch took. What is released while a command uses it
// lives until then, as OpenCL says.
//
// Used under the queue's mutex. Codes are OpenCL's.
#pragma once

#include <base/small_vector.h>

#include <proxy/image_argument.h>
#include <proxy/proxy_memory.h>
#include <vector>

namespace polder::proxy {

// An image of a launch, and the rows that it has the bytes of. No buffer of the rows: there are none, or it shows them itself.
struct LaunchImage {
    cl_mem image = nullptr;
    cl_mem buffer = nullptr;  // of a 1D buffer image of the pool
    ImageArgument argument{};
    ProxyMemory::Place rows;
};
using LaunchImages = SmallVector<LaunchImage, 4>;

class ProxyImages {
public:
    ProxyImages(ForeignContext& context, ProxyMemory& memory, uint64_t bytes_max)
        : context_(context), memory_(memory), bytes_max_(bytes_max) {}
    ProxyImages(const ProxyImages&) = delete;
    ProxyImages& operator=(const ProxyImages&) = delete;
    ~ProxyImages() {
        begin_launch();
        release_until(0);
    }

    // All images are free again.
    void begin_launch() { ++launch_; }
    [[nodiscard]] cl_int take(const ImageArgument& argument, LaunchImage& taken);

    // Copies the rows into the image, or back. `waits` are those of the first command; `done`, of the last one, may be null.
    [[nodiscard]] cl_int copy_in(cl_command_queue queue, const LaunchImage& image,
                                 std::span<const cl_event> waits) const;
    [[nodiscard]] cl_int copy_out(cl_command_queue queue, const LaunchImage& image, cl_event* done) const;

private:
    struct Kept {
        ImageArgument shape;  // without address and pitches
        cl_mem image;
        cl_mem buffer;
        uint64_t bytes;
        uint64_t launch;  // that took it last
    };
    void release_until(uint64_t bytes);
    [[nodiscard]] cl_int make(const ImageArgument& shape, LaunchImage& made) const;
    [[nodiscard]] cl_int take_kept(const ImageArgument& shape, LaunchImage& taken);
    void release(const Kept& kept);

    ForeignContext& context_;
    ProxyMemory& memory_;
    const uint64_t bytes_max_;
    std::vector<Kept> kept_;  // those taken last at the end
    uint64_t kept_bytes_ = 0;
    uint64_t launch_ = 1;
    bool may_show_rows_ = true;
};

}  // namespace polder::proxy
