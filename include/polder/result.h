// Result<T>: a value or an Error. Every function of Polder that can fail returns one.
//
// Polder throws no exceptions of its own. Only the C entry points (lib/api) convert an Error, and std::bad_alloc from the
// standard library, to a cl_int. Values without locks: an object may be used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace polder {

// Numerically equal to the CL_* error code of the same name, so that drivers and the memory layer
// need no OpenCL header and the C entry points need no table.
enum class Status : int32_t {
    success = 0,
    device_not_found = -1,
    device_not_available = -2,
    compiler_not_available = -3,
    mem_object_allocation_failure = -4,
    out_of_resources = -5,
    out_of_host_memory = -6,
    profiling_info_not_available = -7,
    mem_copy_overlap = -8,
    image_format_mismatch = -9,
    image_format_not_supported = -10,
    build_program_failure = -11,
    map_failure = -12,
    misaligned_sub_buffer_offset = -13,
    exec_status_error_for_events_in_wait_list = -14,
    compile_program_failure = -15,
    linker_not_available = -16,
    link_program_failure = -17,
    device_partition_failed = -18,
    kernel_arg_info_not_available = -19,
    invalid_value = -30,
    invalid_device_type = -31,
    invalid_platform = -32,
    invalid_device = -33,
    invalid_context = -34,
    invalid_queue_properties = -35,
    invalid_command_queue = -36,
    invalid_host_ptr = -37,
    invalid_mem_object = -38,
    invalid_image_format_descriptor = -39,
    invalid_image_size = -40,
    invalid_sampler = -41,
    invalid_binary = -42,
    invalid_build_options = -43,
    invalid_program = -44,
    invalid_program_executable = -45,
    invalid_kernel_name = -46,
    invalid_kernel_definition = -47,
    invalid_kernel = -48,
    invalid_arg_index = -49,
    invalid_arg_value = -50,
    invalid_arg_size = -51,
    invalid_kernel_args = -52,
    invalid_work_dimension = -53,
    invalid_work_group_size = -54,
    invalid_work_item_size = -55,
    invalid_global_offset = -56,
    invalid_event_wait_list = -57,
    invalid_event = -58,
    invalid_operation = -59,
    invalid_gl_object = -60,
    invalid_buffer_size = -61,
    invalid_mip_level = -62,
    invalid_global_work_size = -63,
    invalid_property = -64,
    invalid_image_descriptor = -65,
    invalid_compiler_options = -66,
    invalid_linker_options = -67,
    invalid_device_partition_count = -68,
    invalid_pipe_size = -69,
    invalid_device_queue = -70,
    invalid_spec_id = -71,
    max_size_restriction_exceeded = -72,
};

// A status and an optional sentence for the log. The sentence is shared so that an Error
// is two words and copying one never allocates.
class Error {
public:
    explicit Error(Status status) : status_(status) {}
    Error(Status status, std::string detail)
        : status_(status), detail_(std::make_shared<const std::string>(std::move(detail))) {}

    [[nodiscard]] Status status() const { return status_; }
    [[nodiscard]] std::string_view detail() const { return detail_ ? *detail_ : std::string_view{}; }

private:
    Status status_;
    std::shared_ptr<const std::string> detail_;
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(Status status) { return tl::unexpected<Error>{Error{status}}; }
[[nodiscard]] inline tl::unexpected<Error> fail(Status status, std::string detail) {
    return tl::unexpected<Error>{Error{status, std::move(detail)}};
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>{std::move(error)}; }

}  // namespace polder

#define POLDER_CONCAT_INNER(a, b) a##b
#define POLDER_CONCAT(a, b) POLDER_CONCAT_INNER(a, b)

// Returns the error of `expression` from the enclosing function; without an error, continues.
#define POLDER_TRY(expression)                                                                                         \
    do {                                                                                                               \
        if (auto polder_result = (expression); !polder_result) [[unlikely]]                                            \
            return ::polder::fail(std::move(polder_result).error());                                                   \
    } while (false)

// Declares `name` as the value of `expression`, or returns its error.
#define POLDER_ASSIGN(name, expression)                                                                                \
    auto POLDER_CONCAT(polder_result_, __LINE__) = (expression);                                                       \
    if (!POLDER_CONCAT(polder_result_, __LINE__)) [[unlikely]]                                                         \
        return ::polder::fail(std::move(POLDER_CONCAT(polder_result_, __LINE__)).error());                             \
    auto name = std::move(*POLDER_CONCAT(polder_result_, __LINE__))
