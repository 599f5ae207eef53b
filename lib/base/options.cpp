// One table lists the variables with type, default and description. `read` parses each from the environment into the member of Values
// that the row names. The documentation is printed from the same table.
#include "options_table.h"

#include <base/log.h>
#include <base/options.h>

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <variant>

namespace polder::options {
namespace {

// The type of a variable, for parsing and for the documentation.
enum class Kind : uint8_t { text, flag, number, count, bytes, gibibytes };

using Member = std::variant<std::string Values::*, std::optional<std::string> Values::*, bool Values::*,
                            uint32_t Values::*, std::optional<uint32_t> Values::*, std::optional<uint64_t> Values::*>;

struct Option {
    const char* name;
    Kind kind;
    Member member;
    const char* default_text;  // parsed like a user's value; empty leaves the member as it is
    const char* default_prose;
    const char* prose;
};

constexpr const char* cache_default_prose = "`$XDG_CACHE_HOME/polder`, else `$HOME/.cache/polder`";

constexpr Option table[] = {
    {"POCL_DEVICES", Kind::text, &Values::devices, "", "all real devices of this machine",
     "The devices of the platform, in order: driver names separated by spaces, one device for each "
     "occurrence, such as `cpu discrete discrete`. Drivers: `cpu` (the host processor), `discrete` (a "
     "separate memory on this machine, see `doc/drivers.md`), `cuda` (NVIDIA's GPUs, see `doc/cuda.md`), "
     "`proxy` (devices of other OpenCL implementations, see `doc/proxy.md`). An unknown "
     "name is an error: the message lists the known ones, and the platform has no device."},
    {"POCL_DEBUG", Kind::text, &Values::debug, "", "nothing",
     "What is reported on stderr, one line each: categories separated by commas, out of `error`, "
     "`warning`, `api`, `memory`, `compiler`, `driver`, `event`, `cache`, `timing`, or `all`. Errors "
     "and warnings are always reported."},
    {"POCL_CACHE_DIR", Kind::text, &Values::cache_directory, "", cache_default_prose,
     "Where compiled kernels are kept between runs. Created, private to the user, when it is missing; "
     "when it cannot be used, programs are built without a cache."},
    {"POCL_KERNEL_CACHE", Kind::flag, &Values::kernel_cache, "1", "1",
     "Keep compiled kernels on disk. With `0`, the cache is neither read nor written."},
    {"POLDER_EARLY_CODE", Kind::flag, &Values::early_code, "1", "1",
     "Compile a kernel on another thread as soon as the kernel object is created, so that the first launch need not "
     "wait "
     "for all of it. Only where the process may use more than one processor."},
    {"POLDER_QUICK_CODE", Kind::flag, &Values::quick_code, "1", "1",
     "Compile a small kernel with hardly any optimisation for launches with little work on processors. With `0`, "
     "the code of all launches is optimised, as tests of that code need it. The results are the same."},
    {"POLDER_OTHER_FORMS", Kind::flag, &Values::other_forms, "1", "1",
     "When a kernel has worked for long, compile it in other forms on another thread (fewer or more vectors at once, "
     "without lanes), measure each beside the first one in its launches, and keep the fastest. The results are the "
     "same. With `0`, kernels keep the form that the compiler has planned."},
    {"POCL_MEMORY_LIMIT", Kind::gibibytes, &Values::memory_limit_bytes, "", "what the device has",
     "The most memory that the `cpu` device offers and that buffers take on the host, in GiB, or with a suffix: "
     "`512M`, "
     "`8G`. Other devices have the parameter `memory`."},
    {"POCL_CPU_MAX_CU_COUNT", Kind::count, &Values::cpu_max_compute_units, "", "the processors this process may use",
     "The number of compute units, and so of worker threads, of the `cpu` device. Takes precedence over "
     "`POCL_MAX_COMPUTE_UNITS`."},
    {"POCL_MAX_COMPUTE_UNITS", Kind::count, &Values::max_compute_units, "", "what the device has",
     "The most compute units any device may use."},
    {"POCL_MAX_WORK_GROUP_SIZE", Kind::count, &Values::max_work_group_size, "", "what the device has",
     "The most work-items in a work-group; it can only lower a device's own limit."},
    {"POCL_AFFINITY", Kind::flag, &Values::affinity, "0", "0",
     "Bind each worker thread of the `cpu` device to one processor."},
    {"POCL_CPU_LOCAL_MEM_SIZE", Kind::bytes, &Values::cpu_local_memory_bytes, "", "from the processor's caches",
     "Local memory of the `cpu` device in bytes, or with a suffix: `256K`."},
    {"POLDER_CLANG_RESOURCE_DIR", Kind::text, &Values::clang_resource_directory, "",
     "where Clang's headers were when Polder was built",
     "The directory whose `include/opencl-c-base.h` declares OpenCL C (`clang -print-resource-dir`)."},
    {"POLDER_BUILTINS_DIR", Kind::text, &Values::builtins_directory, "", "beside `libpolder.so`",
     "The directory of `polder-builtins.bca`, the library of built-in functions."},
    {"POCL_EXTRA_BUILD_FLAGS", Kind::text, &Values::extra_build_flags, "", "nothing",
     "Appended to the build options of every program, such as `-g -cl-opt-disable`."},
    {"POCL_IGNORE_CL_STD", Kind::flag, &Values::ignore_cl_std, "0", "0",
     "Ignore `-cl-std` in build options, for programs that name a newer version than they need."},
    {"POCL_PLATFORM_NAME_OVERRIDE", Kind::text, &Values::platform_name_override, "", "`Polder`",
     "The platform's name, for programs that look for a certain one."},
    {"POCL_DRIVER_VERSION_OVERRIDE", Kind::text, &Values::driver_version_override, "", "Polder's version",
     "`CL_DRIVER_VERSION` of every device."},
    {"POCL_CPU_VENDOR_ID_OVERRIDE", Kind::number, &Values::cpu_vendor_id_override, "", "the processor's vendor",
     "`CL_DEVICE_VENDOR_ID` of the `cpu` device, decimal or `0x8086`."},
    {"POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES", Kind::flag, &Values::leave_compiler_temp_files, "0", "0",
     "Keep the intermediate files of the kernel compiler in the cache directory."},
    {"POCL_BITCODE_FINALIZER", Kind::text, &Values::bitcode_finalizer, "", "nothing",
     "A shell command run over the bitcode of each work-group function before machine code is made; "
     "`%(bc)` is the name of the file, which the command rewrites. It does not run for kernels from the cache."},
    {"POCL_WORK_GROUP_METHOD", Kind::text, &Values::work_group_method, "auto", "auto",
     "How the work-items of a work-group are executed: `auto` or `loopvec` makes neighbouring work-items the lanes of "
     "vectors where that pays, `loops` executes one after the other. `lanes` is for measurements: lanes wherever they "
     "are possible. Other values mean `auto`."},
    {"POLDER_CPU_TARGET", Kind::text, &Values::cpu_target, "", "the processor of this machine",
     "The processor whose instructions kernels on the `cpu` and `discrete` devices use, by LLVM's name, such as "
     "`x86-64-v2` (vectors of 128 bits) or `haswell` (256 bits). Instructions that this machine lacks are not used. An "
     "unknown name is reported and ignored."},
    {"POCL_STARTUP_DELAY", Kind::number, &Values::startup_delay_s, "0", "0",
     "Seconds to wait when the platform is first queried, so that a debugger or tracer can be attached."},
    {"POCL_SIGUSR2_HANDLER", Kind::flag, &Values::sigusr2_handler, "0", "0",
     "On SIGUSR2, print on stderr how many OpenCL objects of each type are alive."},
    {"POCL_OFFLINE_COMPILE", Kind::flag, &Values::offline_compile, "0", "0",
     "Offer devices that can only compile, for making program binaries, if a driver has such devices. No driver has "
     "them yet: a warning says so."},
    {"POLDER_ALLOC_CONF", Kind::text, &Values::alloc_conf, "", "`backend:bufalloc`",
     "How device memory is allocated: `key:value`, separated by commas, with the keys of PyTorch's "
     "`PYTORCH_CUDA_ALLOC_CONF`. `backend`: `bufalloc` (regions and best fit), `caching` (the rules of PyTorch's "
     "caching "
     "allocator), `bucket` (powers of two). `max_split_size_mb`, `roundup_power2_divisions`, "
     "`garbage_collection_threshold`, `expandable_segments`: as in PyTorch, for `caching`. `max_bytes`: the most "
     "free memory that `bucket` keeps; with `persistent`, it keeps all. `pinned`: which host memory is registered "
     "with devices that then copy it faster: `auto` (the default): memory that is copied again and again; `True`: all, "
     "from the beginning; `False`: none. `grow_ahead`: where a device takes long to make memory, as GPUs do, the next "
     "step is made before it is needed (`True`, the default) or by the command that needs it (`False`). See "
     "`doc/memory.md`."},
    {"POLDER_TRACE", Kind::text, &Values::trace, "", "nothing is recorded",
     "A file into which memory events are recorded: storages, blocks, transfers, maps, kernels. `polder-memory` "
     "replays, "
     "shows and converts it. See `doc/trace.md`."},
};

constexpr const char* parameters_prose =
    "Parameters of the i-th device of a driver, counted from 0 within the driver, such as "
    "`POCL_DISCRETE0_PARAMETERS=\"memory=256M,bandwidth=16G,latency=5us\"` (`type=gpu` makes the device one of "
    "`CL_DEVICE_TYPE_GPU`, for "
    "programs that accept no other; with `host=1` its kernels use pinned host memory in place, as a GPU's, so that it "
    "has SVM and all kinds of unified shared memory) or "
    "`POCL_PROXY0_PARAMETERS=\"icd=libpocl.so.2,platform=0,device=0,memory=1G\"`. The keys of `POLDER_ALLOC_CONF` are "
    "accepted too, for this device alone: `POCL_DISCRETE0_PARAMETERS=\"memory=256M,backend=caching\"`.";

const char* documented_type(const Option& option) {
    switch (option.kind) {
    case Kind::text: return "text";
    case Kind::flag: return "0 or 1";
    case Kind::number: return "number";
    case Kind::count: return "number, at least 1";
    case Kind::bytes: return "bytes";
    case Kind::gibibytes: return "GiB";
    }
    return "";
}

std::optional<uint64_t> parse_number(std::string_view text) {
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (hexadecimal)
        text.remove_prefix(2);
    uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
    if (error != std::errc{} || stop != end)
        return std::nullopt;
    return value;
}

std::optional<bool> parse_flag(std::string_view text) {
    for (const std::string_view on : {"1", "true", "yes", "on"})
        if (text == on)
            return true;
    for (const std::string_view off : {"0", "false", "no", "off"})
        if (text == off)
            return false;
    return std::nullopt;
}

std::optional<uint64_t> parse_gibibytes(std::string_view text) {
    constexpr uint64_t gibibyte = uint64_t{1} << 30;
    const std::optional<uint64_t> plain = parse_number(text);
    if (!plain)
        return parse_bytes(text);
    if (*plain > std::numeric_limits<uint64_t>::max() / gibibyte)
        return std::nullopt;
    return *plain * gibibyte;
}

// A count or size of zero is malformed, because a device with such a limit could not do anything.
std::optional<uint64_t> parse_by_kind(Kind kind, std::string_view text) {
    std::optional<uint64_t> value;
    if (kind == Kind::bytes)
        value = parse_bytes(text);
    else if (kind == Kind::gibibytes)
        value = parse_gibibytes(text);
    else
        value = parse_number(text);
    if (value == 0u && kind != Kind::number)
        return std::nullopt;
    return value;
}

// Each overload returns whether `text` was well-formed, and stores its value only then.
struct Store {
    Values& values;
    Kind kind;
    std::string_view text;

    bool operator()(std::string Values::* member) const { return (values.*member = text, true); }
    bool operator()(std::optional<std::string> Values::* member) const {
        return (values.*member = std::string(text), true);
    }
    bool operator()(bool Values::* member) const {
        const std::optional<bool> flag = parse_flag(text);
        values.*member = flag.value_or(values.*member);
        return flag.has_value();
    }
    bool operator()(std::optional<uint64_t> Values::* member) const {
        const std::optional<uint64_t> value = parse_by_kind(kind, text);
        if (value)
            values.*member = value;
        return value.has_value();
    }
    bool operator()(uint32_t Values::* member) const { return store_32(values.*member); }
    bool operator()(std::optional<uint32_t> Values::* member) const { return store_32(values.*member); }

private:
    template <class Place>
    bool store_32(Place& place) const {
        const std::optional<uint64_t> value = parse_by_kind(kind, text);
        if (!value || *value > std::numeric_limits<uint32_t>::max())
            return false;
        place = static_cast<uint32_t>(*value);
        return true;
    }
};

std::string default_cache_directory(const Environment& environment) {
    if (const char* const xdg = environment("XDG_CACHE_HOME"); xdg && *xdg == '/')
        return std::string(xdg) + "/polder";
    if (const char* const home = environment("HOME"); home && *home)
        return std::string(home) + "/.cache/polder";
    return {};
}

const Values& current() {
    static const Values values =
        read([](const char* name) { return std::getenv(name); },
             [](const std::string& message) { log::line(log::Category::warning, "%s", message.c_str()); });
    return values;
}

}  // namespace

Values read(const Environment& environment, const Warn& warn) {
    Values values;
    values.cache_directory = default_cache_directory(environment);
    for (const Option& option : table) {
        if (*option.default_text)
            std::visit(Store{values, option.kind, option.default_text}, option.member);
        // Scripts disable a variable by setting it to an empty text, which means the default.
        const char* const text = environment(option.name);
        if (!text || !*text)
            continue;
        if (!std::visit(Store{values, option.kind, text}, option.member))
            warn(std::string(option.name) + "=\"" + text + "\" is malformed (expected: " + documented_type(option) +
                 "); taking the default: " + option.default_prose);
    }
    return values;
}

std::string parameters_variable(std::string_view driver, uint32_t index) {
    std::string name = "POCL_";
    for (const char letter : driver)
        name += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    return name + std::to_string(index) + "_PARAMETERS";
}

const std::optional<std::string>& devices() { return current().devices; }
std::string device_parameters(std::string_view driver, uint32_t index) {
    const char* const text = std::getenv(parameters_variable(driver, index).c_str());
    return text ? text : "";
}
const std::string& debug() { return current().debug; }
const std::string& cache_directory() { return current().cache_directory; }
bool kernel_cache() { return current().kernel_cache; }
bool early_code() { return current().early_code; }
bool quick_code() { return current().quick_code; }
bool other_forms() { return current().other_forms; }
std::optional<uint64_t> memory_limit_bytes() { return current().memory_limit_bytes; }
std::optional<uint32_t> cpu_max_compute_units() { return current().cpu_max_compute_units; }
std::optional<uint32_t> max_compute_units() { return current().max_compute_units; }
std::optional<uint64_t> max_work_group_size() { return current().max_work_group_size; }
bool affinity() { return current().affinity; }
std::optional<uint64_t> cpu_local_memory_bytes() { return current().cpu_local_memory_bytes; }
const std::string& clang_resource_directory() { return current().clang_resource_directory; }
const std::string& builtins_directory() { return current().builtins_directory; }
const std::string& extra_build_flags() { return current().extra_build_flags; }
bool ignore_cl_std() { return current().ignore_cl_std; }
const std::optional<std::string>& platform_name_override() { return current().platform_name_override; }
const std::optional<std::string>& driver_version_override() { return current().driver_version_override; }
std::optional<uint32_t> cpu_vendor_id_override() { return current().cpu_vendor_id_override; }
bool leave_compiler_temp_files() { return current().leave_compiler_temp_files; }
const std::string& bitcode_finalizer() { return current().bitcode_finalizer; }
const std::string& cpu_target() { return current().cpu_target; }
bool use_lanes() { return current().work_group_method != "loops"; }
bool force_lanes() { return current().work_group_method == "lanes"; }
uint32_t startup_delay_s() { return current().startup_delay_s; }
bool sigusr2_handler() { return current().sigusr2_handler; }
bool offline_compile() { return current().offline_compile; }
const std::string& alloc_conf() { return current().alloc_conf; }
const std::string& trace() { return current().trace; }

std::string table_as_markdown() {
    std::string text =
        "# Environment variables\n\n"
        "Printed from the table in `lib/base/options.cpp` by `ninja -C build environment-doc`; do not edit.\n"
        "A value that is malformed is reported once on stderr and the default is taken; an empty value\n"
        "means the default. Bytes may carry a suffix K, M, G or T (powers of 1024).\n\n"
        "| variable | value | default | meaning |\n|---|---|---|---|\n";
    const auto row = [&text](const char* name, const char* type, const char* fallback, const char* prose) {
        text += std::string("| `") + name + "` | " + type + " | " + fallback + " | " + prose + " |\n";
    };
    for (const Option& option : table)
        row(option.name, documented_type(option), option.default_prose, option.prose);
    row("POCL_<DRIVER><i>_PARAMETERS", "text", "nothing", parameters_prose);
    return text;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
    uint32_t shift = 0;
    if (!text.empty()) {
        constexpr std::string_view suffixes = "KMGT";
        const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
        if (const size_t place = suffixes.find(letter); place != std::string_view::npos) {
            shift = 10 * static_cast<uint32_t>(place + 1);
            text.remove_suffix(1);
        }
    }
    const std::optional<uint64_t> number = parse_number(text);
    if (!number || *number > (std::numeric_limits<uint64_t>::max() >> shift))
        return std::nullopt;
    return *number << shift;
}

}  // namespace polder::options
