// Checks of buffers and images as arguments of commands.
#pragma once

#include "enqueue.h"

#include <runtime/mem_object.h>

namespace polder::api {

// Devices whose driver compiles kernels itself do not have images.
[[nodiscard]] inline bool has_images(const runtime::Context& context) {
    for (const auto& device : context.devices())
        if (device->has_images())
            return true;
    return false;
}

// A buffer as an argument of a command on `call`'s queue.
[[nodiscard]] Result<runtime::MemObject*> check_buffer(const EnqueueCall& call, cl_mem handle);
// An image likewise.
[[nodiscard]] Result<runtime::MemObject*> check_image(const EnqueueCall& call, cl_mem handle);

[[nodiscard]] Result<void> check_host_reads(const runtime::MemObject& object);
// Of the target of a copy or fill.
[[nodiscard]] Result<void> check_writes(const runtime::MemObject& object);
[[nodiscard]] Result<void> check_host_writes(const runtime::MemObject& object);
[[nodiscard]] Result<memory::MapAccess> check_map_flags(const runtime::MemObject& object, cl_map_flags flags);

}  // namespace polder::api
