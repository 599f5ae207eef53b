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
#include <span>
#include <utility>
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

// Commands that wait for each other: when one of them fails while it executes, the later ones fail too, so that the last event reports it.
class CommandChain {
public:
    // The first command waits for `waits`, which outlive the chain.
    CommandChain(const ForeignContext& context, std::span<const cl_event> waits) : context_(context), waits_(waits) {}
    CommandChain(const CommandChain&) = delete;
    CommandChain& operator=(const CommandChain&) = delete;
    ~CommandChain() { release(); }

    // What the next command waits for.
    [[nodiscard]] std::span<const cl_event> waits() const { return waits_; }
    // `enqueue(count, events, event)` enqueues the next command. Returns its code.
    template <class Enqueue>
    [[nodiscard]] cl_int add(Enqueue&& enqueue) {
        cl_event event = nullptr;
        const cl_int code =
            enqueue(static_cast<cl_uint>(waits_.size()), waits_.empty() ? nullptr : waits_.data(), &event);
        if (code != CL_SUCCESS)
            return code;
        release();
        newest_ = event;
        waits_ = {&newest_, 1};
        return CL_SUCCESS;
    }
    // The event of the last command, now the caller's; null when there was none.
    [[nodiscard]] cl_event take() { return std::exchange(newest_, nullptr); }

private:
    void release() {
        if (newest_ && context_.may_release())
            context_.cl.clReleaseEvent(newest_);
    }

    const ForeignContext& context_;
    std::span<const cl_event> waits_;
    cl_event newest_ = nullptr;
};

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

    // Copies the rows into the image, or back.
    [[nodiscard]] cl_int copy_in(cl_command_queue queue, const LaunchImage& image, CommandChain& chain) const;
    [[nodiscard]] cl_int copy_out(cl_command_queue queue, const LaunchImage& image, CommandChain& chain) const;

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
