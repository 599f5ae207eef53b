// Start-up in this order: the trace, the drivers that POCL_DEVICES names (or all), their devices, the memory spaces with their
// allocators, the OpenCL devices.
#include <base/log.h>
#include <base/options.h>
#include <devices/drivers.h>
#include <memory/trace.h>
#include <runtime/live_objects.h>
#include <runtime/platform.h>

#include <map>
#include <sys/mman.h>
#include <thread>

namespace polder::runtime {
namespace {

// The words of POCL_DEVICES; commas and blanks separate them.
std::vector<std::string_view> words(std::string_view text) {
    constexpr std::string_view separators = " \t\n,;";
    std::vector<std::string_view> list;
    for (size_t begin = text.find_first_not_of(separators); begin != text.npos;) {
        const size_t end = std::min(text.find_first_of(separators, begin), text.size());
        list.push_back(text.substr(begin, end - begin));
        begin = text.find_first_not_of(separators, end);
    }
    return list;
}

const devices::DriverEntry* find_driver(std::string_view name) {
    // Accepts PoCL's older names of its CPU device, too.
    if (name == "pthread" || name == "basic" || name == "cpu-minimal" || name == "cpu-tbb")
        name = "cpu";
    for (const devices::DriverEntry& entry : devices::all_drivers())
        if (entry.name == name)
            return &entry;
    return nullptr;
}

// Whether the process has enough address space left for other devices, the compiler and host memory. It has not when
// `ulimit -v` is small and a device has reserved most of it.
bool has_room_for_the_rest() {
    constexpr size_t needed_bytes = size_t{512} << 20;
    void* const probe = ::mmap(nullptr, needed_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED)
        return false;
    ::munmap(probe, needed_bytes);
    return true;
}

void report_unknown(std::string_view name) {
    std::string known;
    for (const devices::DriverEntry& entry : devices::all_drivers())
        known.append(known.empty() ? "" : ", ").append(entry.name);
    log::line(log::Category::error, "POCL_DEVICES: there is no driver \"%.*s\"; known drivers: %s",
              static_cast<int>(name.size()), name.data(), known.c_str());
}

// Begins the trace. Called before the first memory space is made, because spaces made before it are never recorded.
void begin_trace() {
    const std::string& file = options::trace();
    if (file.empty())
        return;
    if (const Result<void> begun = memory::trace::begin(file); !begun)
        log::line(log::Category::warning, "POLDER_TRACE: nothing is recorded: %s",
                  std::string(begun.error().detail()).c_str());
}

memory::AllocationPolicy policy_of(std::string_view text, std::string_view variable,
                                   const memory::AllocationPolicy& base) {
    const memory::ParsedPolicy parsed = memory::parse_policy(text, variable, base);
    if (!parsed.warning.empty())
        log::line(log::Category::warning, "%s. Its other settings are used.", parsed.warning.c_str());
    return parsed.policy;
}

}  // namespace

Platform& Platform::get() {
    // Never destroyed, because static objects of the application may still have handles, and worker threads may still run.
    static Platform& platform = *new Platform;
    return platform;
}

Platform::Platform() {
    if (const uint32_t delay_s = options::startup_delay_s())
        std::this_thread::sleep_for(std::chrono::seconds(delay_s));
    if (options::sigusr2_handler())
        report_live_objects_on_sigusr2();
    if (options::offline_compile())
        log::line(log::Category::warning, "POCL_OFFLINE_COMPILE: no driver has devices that can only compile");
    begin_trace();
    static_cast<void>(expose(kind));
    open_devices();
    make_spaces_and_devices();
}

void Platform::open_devices() {
    const std::vector<std::string_view> names = words(options::devices() ? *options::devices() : std::string_view{});
    if (names.empty()) {
        for (const devices::DriverEntry& entry : devices::all_drivers()) {
            driver::Driver& driver = *drivers_.emplace_back(devices::make_driver(entry));
            open(driver, 0, driver.count());
        }
        return;
    }
    // When a name is misspelt, no device is opened, so that the application does not compute on another device by mistake.
    for (const std::string_view name : names)
        if (!find_driver(name))
            return report_unknown(name);
    struct InUse {
        driver::Driver* driver = nullptr;
        uint32_t opened = 0;
    };
    std::map<const devices::DriverEntry*, InUse> drivers;
    for (const std::string_view name : names) {
        const devices::DriverEntry* const entry = find_driver(name);
        InUse& in_use = drivers[entry];
        if (!in_use.driver)
            in_use.driver = drivers_.emplace_back(devices::make_driver(*entry)).get();
        open(*in_use.driver, in_use.opened++, 1);
    }
}

void Platform::open(driver::Driver& driver, uint32_t first, uint32_t count) {
    for (uint32_t index = first; index < first + count; ++index) {
        // The last id is memory::application_space.
        if (next_space_ >= memory::application_space.value) {
            log::line(log::Category::error,
                      "at most %u devices can have a memory of their own: the others are left out", next_space_ - 1);
            return;
        }
        const memory::SplitParameters parameters =
            memory::split_parameters(options::device_parameters(driver.name(), index));
        Result<std::unique_ptr<driver::Device>> device = driver.open(index, SpaceId{next_space_}, parameters.driver);
        if (!device) {
            log::line(log::Category::error, "device %.*s%u cannot be opened: %s",
                      static_cast<int>(driver.name().size()), driver.name().data(), index,
                      std::string(device.error().detail()).c_str());
            continue;
        }
        if (!(*device)->info().space.is_host()) {
            if (!has_room_for_the_rest()) {
                log::line(log::Category::error,
                          "device %.*s%u is left out: with its memory, the process has too little address space left",
                          static_cast<int>(driver.name().size()), driver.name().data(), index);
                continue;
            }
            ++next_space_;
        }
        opened_.push_back({device->release(), std::string(driver.name()),
                           "parameters of " + std::string(driver.name()) + std::to_string(index), parameters.policy});
    }
}

void Platform::make_spaces_and_devices() {
    const memory::AllocationPolicy common = policy_of(options::alloc_conf(), "POLDER_ALLOC_CONF", {});
    driver::Device* host_device = nullptr;
    memory::AllocationPolicy host_policy = common;
    for (const Opened& opened : opened_) {
        // Of several devices in host memory, chooses the one that reports the most memory.
        if (!opened.device->info().space.is_host() ||
            (host_device && host_device->info().memory_bytes >= opened.device->info().memory_bytes))
            continue;
        host_device = opened.device;
        host_policy = policy_of(opened.allocation, opened.parameters_name, common);
    }
    spaces_.push_back(memory::Space::host(host_device, host_policy).release());
    for (const Opened& opened : opened_) {
        memory::Space* space = spaces_.front();
        if (!opened.device->info().space.is_host()) {
            const auto policy = policy_of(opened.allocation, opened.parameters_name, common);
            space = spaces_.emplace_back(memory::Space::of(*opened.device, policy).release());
        }
        Ref<Device> device = make_ref<Device>(*new DriverSlot(*opened.device), *space, opened.driver_name);
        if (device->expose(Device::kind)) {
            devices_.push_back(device);
            static_cast<void>(device.detach());  // the handle owns the reference now
        }
    }
}

std::string Platform::name() { return options::platform_name_override().value_or("Polder"); }

std::string Platform::version() { return "OpenCL 3.1 Polder " POLDER_VERSION; }

}  // namespace polder::runtime
