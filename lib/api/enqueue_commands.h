// The commands for which clEnqueue* and clCommand*KHR check the same arguments. `call` determines whether they are enqueued or recorded.
#pragma once

#include "enqueue.h"

#include <runtime/kernel.h>

namespace polder::api {

struct SizeArrays {
    cl_uint work_dim;
    const size_t* offset;
    const size_t* global;
    const size_t* local;
};

// Each function has the errors of the clEnqueue* function for its command.
[[nodiscard]] Result<void> enqueue_launch(const EnqueueCall& call, const runtime::Kernel& kernel, cl_command_type type,
                                          const SizeArrays& sizes);
[[nodiscard]] Result<void> enqueue_copy(const EnqueueCall& call, cl_mem src_buffer, cl_mem dst_buffer,
                                        size_t src_offset, size_t dst_offset, size_t size);

struct CopyRectPlaces {
    const size_t* origin;
    size_t row_pitch;
    size_t slice_pitch;
};
[[nodiscard]] Result<void> enqueue_copy_rect(const EnqueueCall& call, cl_mem src_buffer, cl_mem dst_buffer,
                                             const CopyRectPlaces& src, const CopyRectPlaces& dst,
                                             const size_t* region);
[[nodiscard]] Result<void> enqueue_fill(const EnqueueCall& call, cl_mem buffer, const void* pattern,
                                        size_t pattern_size, size_t offset, size_t size);

struct ImageRegion {
    const size_t* origin;
    const size_t* size;
};
[[nodiscard]] Result<void> enqueue_image_copy(const EnqueueCall& call, cl_mem from_image, cl_mem to_image,
                                              const size_t* from_origin, const size_t* to_origin, const size_t* region);
[[nodiscard]] Result<void> enqueue_image_to_buffer(const EnqueueCall& call, cl_mem image, cl_mem buffer,
                                                   const ImageRegion& region, size_t offset);
[[nodiscard]] Result<void> enqueue_buffer_to_image(const EnqueueCall& call, cl_mem buffer, cl_mem image, size_t offset,
                                                   const ImageRegion& region);
[[nodiscard]] Result<void> enqueue_image_fill(const EnqueueCall& call, cl_mem image, const void* color,
                                              const ImageRegion& region);

}  // namespace polder::api
