// Copies and fills of the fake libcuda. Host memory that is not pinned is refused.
#include "fake_entry.h"

#include <algorithm>
#include <cstring>

using namespace polder::cuda;
using namespace polder::cuda::fake;

EXPORT Code cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t size, Stream stream) try {
    ENTER("cuMemcpyHtoDAsync_v2");
    NEEDS_STREAM(stream);
    if (!state().is_pinned(from, size))
        return invalid_value;
    count_bytes("cuMemcpyHtoDAsync_v2", size);
    stream->push([to, from, size] { std::memcpy(pointer(to), from, size); });
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t size, Stream stream) try {
    ENTER("cuMemcpyDtoHAsync_v2");
    NEEDS_STREAM(stream);
    if (!state().is_pinned(to, size))
        return invalid_value;
    count_bytes("cuMemcpyDtoHAsync_v2", size);
    stream->push([to, from, size] { std::memcpy(to, pointer(from), size); });
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t size, Stream stream) try {
    ENTER("cuMemcpyDtoDAsync_v2");
    NEEDS_STREAM(stream);
    count_bytes("cuMemcpyDtoDAsync_v2", size);
    stream->push([to, from, size] { std::memcpy(pointer(to), pointer(from), size); });
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemcpyPeerAsync(DevicePointer to, Context, DevicePointer from, Context, size_t size, Stream stream) try {
    ENTER("cuMemcpyPeerAsync");
    NEEDS_STREAM(stream);
    count_bytes("cuMemcpyPeerAsync", size);
    stream->push([to, from, size] { std::memcpy(pointer(to), pointer(from), size); });
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemcpy3DAsync_v2(const Copy3D* copy, Stream stream) try {
    ENTER("cuMemcpy3DAsync_v2");
    NEEDS_STREAM(stream);
    for (const CopyEnd3D* const end : {&copy->from, &copy->to}) {
        const uint64_t bytes = (copy->height - 1) * end->pitch + copy->width_bytes;
        if (end->pitch < copy->width_bytes || copy->depth != 1 ||
            (end->type == memory_of_host && !state().is_pinned(end->host, bytes)))
            return invalid_value;
    }
    count_bytes("cuMemcpy3DAsync_v2", copy->width_bytes * copy->height);
    stream->push([rows = *copy] {
        const auto base = [](const CopyEnd3D& end) {
            return end.type == memory_of_host ? static_cast<std::byte*>(const_cast<void*>(end.host))
                                              : pointer(end.device);
        };
        for (size_t y = 0; y < rows.height; ++y)
            std::memcpy(base(rows.to) + y * rows.to.pitch, base(rows.from) + y * rows.from.pitch, rows.width_bytes);
    });
    return code_success;
}
CATCH_OUT_OF_MEMORY

namespace {
template <class Word>
Code fill(DevicePointer to, Word word, size_t count, Stream stream) {
    NEEDS_STREAM(stream);
    if (to % sizeof word != 0)
        return invalid_value;
    stream->push([to, word, count] { std::fill_n(reinterpret_cast<Word*>(pointer(to)), count, word); });
    return code_success;
}
} // namespace

EXPORT Code cuMemsetD8Async(DevicePointer to, unsigned char byte, size_t count, Stream stream) try {
    ENTER("cuMemsetD8Async");
    return fill(to, byte, count, stream);
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemsetD16Async(DevicePointer to, unsigned short word, size_t count, Stream stream) try {
    ENTER("cuMemsetD16Async");
    return fill(to, word, count, stream);
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemsetD32Async(DevicePointer to, unsigned word, size_t count, Stream stream) try {
    ENTER("cuMemsetD32Async");
    return fill(to, word, count, stream);
}
CATCH_OUT_OF_MEMORY
