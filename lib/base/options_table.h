// The implementation of options.h: the values of all options, and a function that reads them from any source of variables, so
// that tests need not change the process's environment. Values without locks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace polder::options {

struct Values {
    std::optional<std::string> devices;
    std::string debug;
    std::string cache_directory;
    bool kernel_cache = true;
    bool early_code = true;
    bool quick_code = true;
    bool other_forms = true;
    std::optional<uint64_t> memory_limit_bytes;
    std::optional<uint32_t> cpu_max_compute_units;
    std::optional<uint32_t> max_compute_units;
    std::optional<uint64_t> max_work_group_size;
    bool affinity = false;
    std::optional<uint64_t> cpu_local_memory_bytes;
    std::string clang_resource_directory;
    std::string builtins_directory;
    std::string extra_build_flags;
    bool ignore_cl_std = false;
    std::optional<std::string> platform_name_override;
    std::optional<std::string> driver_version_override;
    std::optional<uint32_t> cpu_vendor_id_override;
    bool leave_compiler_temp_files = false;
    std::string bitcode_finalizer;
    std::string work_group_method;
    std::string cpu_target;
    uint32_t startup_delay_s = 0;
    bool sigusr2_handler = false;
    bool offline_compile = false;
    std::string alloc_conf;
    std::string trace;
};

// Returns the value of a variable, or null when it is not set.
using Environment = std::function<const char*(const char* name)>;
using Warn = std::function<void(const std::string& message)>;

[[nodiscard]] Values read(const Environment& environment, const Warn& warn);

// "POCL_DISCRETE0_PARAMETERS" for {"discrete", 0}.
[[nodiscard]] std::string parameters_variable(std::string_view driver, uint32_t index);

}  // namespace polder::options
