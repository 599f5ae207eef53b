// cl_khr_external_memory, with the descriptors of cl_khr_external_memory_opaque_fd and cl_khr_external_memory_dma_buf.
#pragma once

#include <runtime/context.h>
#include <runtime/external_memory.h>

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <optional>
#include <polder/result.h>
#include <span>

namespace polder::api {

// The handle types of every device, for buffers and for images. Images in such memory are linear.
[[nodiscard]] inline std::span<const cl_external_memory_handle_type_khr> external_memory_types() {
    static constexpr cl_external_memory_handle_type_khr types[] = {CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
                                                                   CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR};
    return types;
}
// Older headers do not have this query.
inline constexpr cl_device_info device_linear_image_types = 0x2052;

// The descriptor and its devices from the properties of a memory object.
class ExternalProperties {
public:
    // `at` is the next property of a list. Returns how many elements of the list the property has, including its name; 0 when it is not
    // a property of external memory. CL_INVALID_PROPERTY, CL_INVALID_DEVICE.
    [[nodiscard]] Result<size_t> take(const runtime::Context& context, const cl_mem_properties* at);
    // Called at the end of the list. CL_INVALID_PROPERTY: there are devices, but no descriptor.
    [[nodiscard]] Result<void> check_complete() const;

    [[nodiscard]] bool has_source() const { return source_.has_value(); }
    // Checks that flags and host_ptr do not request other memory. CL_INVALID_VALUE, CL_INVALID_HOST_PTR.
    [[nodiscard]] static Result<void> check_arguments(cl_mem_flags flags, const void* host_ptr);
    [[nodiscard]] Result<Ref<runtime::ExternalMemory>> import(uint64_t size, cl_mem_flags flags) &&;

private:
    std::optional<runtime::ExternalMemory::Source> source_;
    std::optional<std::vector<Ref<runtime::Device>>> devices_;
};

}  // namespace polder::api
