// Rows that follow each other without gaps are copied by one command, others slice by slice or row by row: OpenCL's copies between buffers
// and images know no pitches.
#include <algorithm>
#include <cstring>
#include <proxy/proxy_images.h>
#include <utility>

namespace polder::proxy {
namespace {

// The implementation will never do it, unlike where it lacks memory.
bool is_refusal(cl_int code) { return code <= CL_INVALID_VALUE; }

// In the order of origins; layers follow the last dimension, as in the descriptor.
struct Region {
    size_t of[3];
};
Region region_of(const ImageDescriptor& image) {
    return {{static_cast<size_t>(image.width), static_cast<size_t>(image.height), static_cast<size_t>(image.depth)}};
}

uint64_t row_bytes(const ImageDescriptor& image) { return static_cast<uint64_t>(image.width) * image.element_bytes; }

uint64_t bytes_of(const ImageDescriptor& image) {
    return row_bytes(image) * static_cast<uint64_t>(image.height) * static_cast<uint64_t>(image.depth);
}

// Of an argument that the kernel does not use, the descriptor is zero; any image does.
ImageArgument whole(ImageArgument argument) {
    ImageDescriptor& image = argument.descriptor;
    if (image.width == 0) {
        image = {};
        image.width = image.height = image.depth = 1;
        image.channel_order = CL_RGBA;
        image.channel_type = CL_UNORM_INT8;
        image.element_bytes = 4;
    }
    return argument;
}

// Calls copy(offset in the buffer, origin, region) for parts whose rows follow each other, until it returns an error.
template <class Copy>
cl_int for_each_part(const LaunchImage& image, Copy&& copy) {
    const ImageDescriptor& shape = image.argument.descriptor;
    const Region all = region_of(shape);
    const bool rows_follow = shape.row_pitch == row_bytes(shape) || all.of[1] == 1;
    const bool slices_follow = rows_follow && (all.of[2] == 1 || shape.slice_pitch == row_bytes(shape) * all.of[1]);
    const size_t rows = rows_follow ? 1 : all.of[1];
    const size_t slices = slices_follow ? 1 : all.of[2];
    const size_t region[3] = {all.of[0], rows_follow ? all.of[1] : 1, slices_follow ? all.of[2] : 1};
    cl_int code = CL_SUCCESS;
    for (size_t z = 0; z < slices; ++z)
        for (size_t y = 0; y < rows && code == CL_SUCCESS; ++y) {
            const size_t origin[3] = {0, y, z};
            const uint64_t offset = image.rows.offset + z * shape.slice_pitch + y * shape.row_pitch;
            code = copy(offset, origin, region);
        }
    return code;
}

}  // namespace

cl_int ProxyImages::take(const ImageArgument& given, LaunchImage& taken) {
    taken.argument = whole(given);
    const DeviceAddress address{given.descriptor.data};
    if (address.value == 0)
        return take_kept(taken.argument, taken);
    const ProxyMemory::Place rows = memory_.resolve(address);
    if (may_show_rows_ && can_show_rows(context_, given, rows.offset)) {
        const cl_int code = memory_.image_at(address, given, taken.image);
        if (!is_refusal(code))
            return code;
        may_show_rows_ = false;
    }
    taken.rows = rows;
    return take_kept(taken.argument, taken);
}

// A 1D buffer image shows a buffer of its own.
cl_int ProxyImages::make(const ImageArgument& shape, LaunchImage& made) const {
    if (shape.type == driver::ImageType::buffer_1d) {
        cl_int code = CL_SUCCESS;
        made.buffer =
            context_.cl.clCreateBuffer(context_.handle, CL_MEM_READ_WRITE, row_bytes(shape.descriptor), nullptr, &code);
        if (!made.buffer)
            return code == CL_SUCCESS ? CL_OUT_OF_RESOURCES : code;
    }
    const cl_int code = create_image(context_, shape, made.buffer, made.image);
    if (code != CL_SUCCESS && made.buffer)
        context_.cl.clReleaseMemObject(std::exchange(made.buffer, nullptr));
    return code;
}

cl_int ProxyImages::take_kept(const ImageArgument& shape, LaunchImage& taken) {
    const auto found = std::ranges::find_if(
        kept_, [&](const Kept& kept) { return kept.launch != launch_ && have_one_shape(kept.shape, shape); });
    if (found != kept_.end()) {
        found->launch = launch_;
        taken.image = found->image;
        taken.buffer = found->buffer;
        std::rotate(found, found + 1, kept_.end());
        return CL_SUCCESS;
    }
    const uint64_t bytes = bytes_of(shape.descriptor);
    kept_.reserve(kept_.size() + 1);
    release_until(bytes_max_ - std::min(bytes_max_, bytes));
    cl_int code = make(shape, taken);
    if (code != CL_SUCCESS && !kept_.empty()) {
        release_until(0);
        code = make(shape, taken);
    }
    if (code != CL_SUCCESS)
        return code;
    kept_.push_back({shape, taken.image, taken.buffer, bytes, launch_});
    kept_bytes_ += bytes;
    return CL_SUCCESS;
}

void ProxyImages::release(const Kept& kept) {
    if (!context_.may_release())
        return;
    context_.cl.clReleaseMemObject(kept.image);
    if (kept.buffer)
        context_.cl.clReleaseMemObject(kept.buffer);
}

// Those that were taken longest ago, but for those of this launch, so that at most so many bytes are kept.
void ProxyImages::release_until(uint64_t bytes) {
    auto end = kept_.begin();
    for (; end != kept_.end() && kept_bytes_ > bytes && end->launch != launch_; ++end) {
        kept_bytes_ -= end->bytes;
        release(*end);
    }
    kept_.erase(kept_.begin(), end);
}

cl_int ProxyImages::copy_in(cl_command_queue queue, const LaunchImage& image, CommandChain& chain) const {
    const auto& cl = context_.cl;
    if (image.buffer)
        return chain.add([&](cl_uint count, const cl_event* waits, cl_event* done) {
            return cl.clEnqueueCopyBuffer(queue, image.rows.buffer, image.buffer, image.rows.offset, 0,
                                          row_bytes(image.argument.descriptor), count, waits, done);
        });
    return for_each_part(image, [&](uint64_t offset, const size_t* origin, const size_t* region) {
        return chain.add([&](cl_uint count, const cl_event* waits, cl_event* done) {
            return cl.clEnqueueCopyBufferToImage(queue, image.rows.buffer, image.image, offset, origin, region, count,
                                                 waits, done);
        });
    });
}

cl_int ProxyImages::copy_out(cl_command_queue queue, const LaunchImage& image, CommandChain& chain) const {
    const auto& cl = context_.cl;
    if (image.buffer)
        return chain.add([&](cl_uint count, const cl_event* waits, cl_event* done) {
            return cl.clEnqueueCopyBuffer(queue, image.buffer, image.rows.buffer, 0, image.rows.offset,
                                          row_bytes(image.argument.descriptor), count, waits, done);
        });
    return for_each_part(image, [&](uint64_t offset, const size_t* origin, const size_t* region) {
        return chain.add([&](cl_uint count, const cl_event* waits, cl_event* done) {
            return cl.clEnqueueCopyImageToBuffer(queue, image.image, image.rows.buffer, origin, region, offset, count,
                                                 waits, done);
        });
    });
}

}  // namespace polder::proxy
