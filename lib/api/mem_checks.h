// Checks of buffers and images as arguments of commands.
#pragma once

#include "enqueue.h"

#include <runtime/mem_object.h>

#include <initializer_list>
#include <polder/image_limits.h>

namespace polder::api {

// Whether a device of the context has images.
[[nodiscard]] inline bool has_images(const runtime::Context& context) {
    for (const auto& device : context.devices())
        if (device->has_images())
            return true;
    return false;
}

// Checks a buffer that is an argument of a command on `call`'s queue.
[[nodiscard]] Result<runtime::MemObject*> check_buffer(const EnqueueCall& call, cl_mem handle);
// The same for an image.
[[nodiscard]] Result<runtime::MemObject*> check_image(const EnqueueCall& call, cl_mem handle);
// Checks that the device supports images of this size, and their format for one of the uses at least.
[[nodiscard]] Result<void> check_support(const runtime::Device& device, const runtime::ImageShape& image,
                                         std::initializer_list<driver::ImageUse> uses);

[[nodiscard]] Result<void> check_host_reads(const runtime::MemObject& object);
// Checks that a command may write to the object, the target of a copy or fill.
[[nodiscard]] Result<void> check_writes(const runtime::MemObject& object);
[[nodiscard]] Result<void> check_host_writes(const runtime::MemObject& object);
[[nodiscard]] Result<memory::MapAccess> check_map_flags(const runtime::MemObject& object, cl_map_flags flags);

}  // namespace polder::api
