// The processors come from the affinity mask, the quotas of processors and memory from the control groups (versions 1 and 2): the
// smallest value of all groups from the process's own up to the root holds.
#include <base/options.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <host/processors.h>
#include <sched.h>
#include <sstream>
#include <string_view>
#include <thread>

namespace polder::devices {
namespace {

std::optional<uint64_t> parse_number(std::string_view text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end == text.data())
        return std::nullopt;
    return value;
}

std::optional<uint64_t> number_in(const std::string& path) {
    const auto line = first_line(path);
    return line ? parse_number(*line) : std::nullopt;
}

// The path of the process's group in one hierarchy of control groups. The file has lines "number:controllers:path"; version 2 has no
// controllers.
std::optional<std::string> cgroup_path(const ControlGroupFiles& files, std::string_view controller) {
    std::ifstream file(files.of_process);
    for (std::string line; std::getline(file, line);) {
        const size_t first = line.find(':');
        const size_t second = line.find(':', first + 1);
        if (second == std::string::npos)
            continue;
        std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
        const bool wanted = controller.empty()
                                ? controllers == ",,"
                                : controllers.find(',' + std::string(controller) + ',') != std::string::npos;
        if (wanted)
            return line.substr(second + 1);
    }
    return std::nullopt;
}

// Every directory from the process's group up to the root, as seen under `mount`. In a container the path may
// name directories that only exist outside; the root is then the container's own group.
std::vector<std::string> cgroup_directories(const ControlGroupFiles& files, std::string_view controller) {
    std::vector<std::string> directories;
    const std::string mount = controller.empty() ? files.mount : files.mount + '/' + std::string(controller);
    if (auto path = cgroup_path(files, controller))
        for (std::string_view rest = *path; rest.size() > 1; rest = rest.substr(0, rest.rfind('/')))
            directories.push_back(mount + std::string(rest));
    directories.push_back(mount);
    return directories;
}

template <class Read>
auto smallest(const std::vector<std::string>& directories, Read read) {
    decltype(read(directories.front())) least;
    for (const std::string& directory : directories)
        if (const auto value = read(directory); value && (!least || *value < *least))
            least = value;
    return least;
}

std::optional<double> share_v2(const std::string& directory) {
    const auto line = first_line(directory + "/cpu.max");
    if (!line || line->starts_with("max"))
        return std::nullopt;
    std::istringstream fields(*line);
    double quota = 0;
    double period = 0;
    if (!(fields >> quota >> period) || quota <= 0 || period <= 0)
        return std::nullopt;
    return quota / period;
}

std::optional<double> share_v1(const std::string& directory) {
    // A quota of -1 means no quota; number_in returns nothing for it, because it is not an unsigned number.
    const auto quota = number_in(directory + "/cpu.cfs_quota_us");
    const auto period = number_in(directory + "/cpu.cfs_period_us");
    if (!quota || !period || *quota == 0 || *period == 0)
        return std::nullopt;
    return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

std::optional<std::string> first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    if (!file || !std::getline(file, line))
        return std::nullopt;
    return line;
}

uint32_t clock_mhz_of_host() {
    if (const auto khz = number_in("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
        return static_cast<uint32_t>(*khz / 1000);
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (const size_t begin = line.find_first_of("0123456789");
            line.starts_with("cpu MHz") && begin != std::string::npos)
            return static_cast<uint32_t>(parse_number(std::string_view{line}.substr(begin)).value_or(0));
    return 0;
}

std::vector<int> allowed_processors() {
    std::vector<int> processors;
    // Larger than any machine: the kernel refuses a set that is too small for it.
    constexpr int processors_max = 16 * 1024;
    cpu_set_t* const set = CPU_ALLOC(processors_max);
    const size_t set_bytes = CPU_ALLOC_SIZE(processors_max);
    if (sched_getaffinity(0, set_bytes, set) == 0)
        for (int cpu = 0; cpu < processors_max; ++cpu)
            if (CPU_ISSET_S(static_cast<size_t>(cpu), set_bytes, set))
                processors.push_back(cpu);
    CPU_FREE(set);
    if (processors.empty())
        for (unsigned cpu = 0; cpu < std::max(1u, std::thread::hardware_concurrency()); ++cpu)
            processors.push_back(static_cast<int>(cpu));
    return processors;
}

std::vector<int> usable_processors() {
    std::vector<int> processors = allowed_processors();
    size_t count = processors.size();
    for (const std::optional<uint32_t> limit : {quota_processors(), options::max_compute_units()})
        if (limit && *limit > 0)
            count = std::min<size_t>(count, *limit);
    processors.resize(count);
    return processors;
}

uint32_t vector_register_bytes() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return 64;
    if (__builtin_cpu_supports("avx"))
        return 32;
#endif
    return 16;
}

std::optional<uint32_t> quota_processors(const ControlGroupFiles& files) {
    auto share = smallest(cgroup_directories(files, ""), share_v2);
    if (!share)
        share = smallest(cgroup_directories(files, "cpu"), share_v1);
    if (!share)
        return std::nullopt;
    const auto whole = static_cast<uint32_t>(*share);
    return std::max<uint32_t>(1, whole < *share ? whole + 1 : whole);
}

std::optional<uint64_t> quota_memory_bytes(const ControlGroupFiles& files) {
    auto bytes = smallest(cgroup_directories(files, ""),
                          [](const std::string& directory) { return number_in(directory + "/memory.max"); });
    if (!bytes)
        bytes = smallest(cgroup_directories(files, "memory"),
                         [](const std::string& directory) { return number_in(directory + "/memory.limit_in_bytes"); });
    return bytes;
}

}  // namespace polder::devices
