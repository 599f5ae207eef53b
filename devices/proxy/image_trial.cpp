// clSetKernelArg must refuse an image that is not of the parameter's type, and one created for reading where the kernel writes, or the other way
// round. Every device with images has the format of the images here.
#include <proxy/image_argument.h>
#include <proxy/image_trial.h>
#include <utility>

namespace polder::proxy {
namespace {

using driver::ImageType;
using driver::ImageUse;

constexpr int32_t extent = 4;
constexpr uint32_t element_bytes = 4;

}  // namespace

ImageTrial::~ImageTrial() {
    for (const auto& uses : images_)
        for (const Made& made : uses)
            if (made.handle)
                context_.cl.clReleaseMemObject(made.handle);
    if (elements_)
        context_.cl.clReleaseMemObject(elements_);
}

cl_mem ImageTrial::image(Taken taken) {
    Made& made = images_[static_cast<size_t>(taken.use)][static_cast<size_t>(taken.type)];
    if (std::exchange(made.is_tried, true) || !context_.cl.clCreateImage)
        return made.handle;
    cl_int code = CL_SUCCESS;
    const bool is_buffer = taken.type == ImageType::buffer_1d;
    if (is_buffer && !elements_)
        elements_ = context_.cl.clCreateBuffer(context_.handle, CL_MEM_READ_WRITE, size_t{extent} * element_bytes,
                                               nullptr, &code);
    if (is_buffer && !elements_)
        return nullptr;
    const ImageArgument argument{
        taken.type,
        taken.use,
        {.width = extent, .height = extent, .depth = extent, .channel_order = CL_RGBA, .channel_type = CL_UNORM_INT8}};
    if (create_image(context_, argument, is_buffer ? elements_ : nullptr, made.handle) != CL_SUCCESS)
        made.handle = nullptr;
    return made.handle;
}

bool ImageTrial::takes(cl_kernel kernel, cl_uint index, Taken taken) {
    const cl_mem handle = image(taken);
    return handle && context_.cl.clSetKernelArg(kernel, index, sizeof handle, &handle) == CL_SUCCESS;
}

std::optional<ImageTrial::Taken> ImageTrial::try_parameter(cl_kernel kernel, cl_uint index) {
    std::optional<Taken> found;
    for (size_t type = 0; type < driver::image_types; ++type) {
        const Taken taken{static_cast<ImageType>(type), ImageUse::read_write};
        if (!takes(kernel, index, taken))
            continue;
        if (found)
            return std::nullopt;
        found = taken;
    }
    if (!found)
        return std::nullopt;
    const bool reads = takes(kernel, index, {found->type, ImageUse::read});
    const bool writes = takes(kernel, index, {found->type, ImageUse::write});
    if (reads != writes)
        found->use = reads ? ImageUse::read : ImageUse::write;
    return found;
}

}  // namespace polder::proxy
