// The environment variables that Polder reads: one table with name, type, default and description. doc/environment.md is
// generated from it.
//
// The values are read when one of them is first needed, and do not change afterwards. Any thread may call any function.
// A malformed value is reported once as a warning, and the default is used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace polder::options {

// Each option has an accessor; the table in options.cpp describes its meaning.
[[nodiscard]] const std::optional<std::string>& devices();  // POCL_DEVICES
[[nodiscard]] std::string device_parameters(std::string_view driver, uint32_t index);  // POCL_<DRIVER><i>_PARAMETERS
[[nodiscard]] const std::string& debug();  // POCL_DEBUG
[[nodiscard]] const std::string&
cache_directory();  // POCL_CACHE_DIR, or the XDG default; empty: nowhere to keep a cache
[[nodiscard]] bool kernel_cache();  // POCL_KERNEL_CACHE
[[nodiscard]] bool early_code();  // POLDER_EARLY_CODE
[[nodiscard]] bool quick_code();  // POLDER_QUICK_CODE
[[nodiscard]] bool other_forms();  // POLDER_OTHER_FORMS
[[nodiscard]] std::optional<uint64_t> memory_limit_bytes();  // POCL_MEMORY_LIMIT (GiB; K, M, G suffixes)
[[nodiscard]] std::optional<uint32_t> cpu_max_compute_units();  // POCL_CPU_MAX_CU_COUNT
[[nodiscard]] std::optional<uint32_t> max_compute_units();  // POCL_MAX_COMPUTE_UNITS
[[nodiscard]] std::optional<uint64_t> max_work_group_size();  // POCL_MAX_WORK_GROUP_SIZE
[[nodiscard]] bool affinity();  // POCL_AFFINITY
[[nodiscard]] std::optional<uint64_t> cpu_local_memory_bytes();  // POCL_CPU_LOCAL_MEM_SIZE
[[nodiscard]] const std::string&
clang_resource_directory();  // POLDER_CLANG_RESOURCE_DIR; empty: that of the Clang that Polder was built with
[[nodiscard]] const std::string& builtins_directory();  // POLDER_BUILTINS_DIR; empty: beside libpolder.so
[[nodiscard]] const std::string& extra_build_flags();  // POCL_EXTRA_BUILD_FLAGS
[[nodiscard]] bool ignore_cl_std();  // POCL_IGNORE_CL_STD
[[nodiscard]] const std::optional<std::string>& platform_name_override();  // POCL_PLATFORM_NAME_OVERRIDE
[[nodiscard]] const std::optional<std::string>& driver_version_override();  // POCL_DRIVER_VERSION_OVERRIDE
[[nodiscard]] std::optional<uint32_t> cpu_vendor_id_override();  // POCL_CPU_VENDOR_ID_OVERRIDE
[[nodiscard]] bool leave_compiler_temp_files();  // POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES
[[nodiscard]] bool use_lanes();  // POCL_WORK_GROUP_METHOD is not "loops"
[[nodiscard]] bool force_lanes();  // POCL_WORK_GROUP_METHOD is "lanes"
[[nodiscard]] const std::string& cpu_target();  // POLDER_CPU_TARGET, LLVM's name of a processor; empty: this one
[[nodiscard]] const std::string& bitcode_finalizer();  // POCL_BITCODE_FINALIZER, a command; empty: none
[[nodiscard]] uint32_t startup_delay_s();  // POCL_STARTUP_DELAY
[[nodiscard]] bool sigusr2_handler();  // POCL_SIGUSR2_HANDLER
[[nodiscard]] bool offline_compile();  // POCL_OFFLINE_COMPILE
[[nodiscard]] const std::string& alloc_conf();  // POLDER_ALLOC_CONF
[[nodiscard]] const std::string& trace();  // POLDER_TRACE, a file; empty: nothing is recorded

// The table as Markdown (doc/environment.md).
[[nodiscard]] std::string table_as_markdown();

// "256M" -> 268435456: a number with an optional K, M, G, T suffix (powers of 1024).
[[nodiscard]] std::optional<uint64_t> parse_bytes(std::string_view text);

}  // namespace polder::options
