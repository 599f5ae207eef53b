#include <base/options.h>

#include <algorithm>
#include <discrete/discrete_device.h>
#include <discrete/discrete_driver.h>
#include <host/caches.h>
#include <host/processors.h>
#include <iterator>

namespace polder::discrete {
namespace {

constexpr uint64_t local_memory_bytes = uint64_t{64} * 1024;
// Local memory for 1,024 threads that execute work-groups, in bytes. Most of it is never accessed.
constexpr uint64_t local_region_bytes = local_memory_bytes * 1024;

driver::DeviceInfo device_info(uint32_t index, SpaceId space, const Parameters& parameters, uint32_t compute_units) {
    driver::DeviceInfo info;
    info.name = "discrete" + std::to_string(index);  // as in POCL_DISCRETE<index>_PARAMETERS
    info.vendor = "Polder";
    info.driver_version = POLDER_VERSION;
    info.type = parameters.type;
    info.space = space;
    info.compute_units = compute_units;
    info.clock_mhz = devices::clock_mhz_of_host();
    info.max_sub_devices = compute_units > 1 ? compute_units : 0;
    if (const auto limit = options::max_work_group_size(); limit && *limit > 0)
        info.max_work_group_size = *limit;
    std::fill(std::begin(info.max_work_item_sizes), std::end(info.max_work_item_sizes), info.max_work_group_size);
    info.memory_bytes = parameters.memory_bytes;
    info.global_cache = devices::caches_of_host().last_level;
    info.code.local_memory_bytes = local_memory_bytes;
    info.local_memory_is_dedicated = true;
    info.preferred_vector_bytes = devices::vector_register_bytes();
    // A native kernel could not access the buffers in the device's memory.
    info.native_kernels = false;
    return info;
}

class DiscreteDriver final : public driver::Driver {
    [[nodiscard]] std::string_view name() const override { return "discrete"; }
    [[nodiscard]] uint32_t count() const override { return 0; }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>> open(uint32_t index, SpaceId space,
                                                               std::string_view text) override {
        const Parameters parameters = parse_parameters(text, index);
        POLDER_ASSIGN(arena, Arena::create(ByteCount{parameters.memory_bytes}, ByteCount{local_region_bytes}));
        SharedMemory shared{arena, std::make_shared<devices::InterconnectModel>(parameters.link), nullptr,
                            parameters.host_memory == Parameters::HostMemory::in_place,
                            parameters.unified == Parameters::Unified::mapped};
        const bool is_coherent = parameters.unified == Parameters::Unified::coherent;
        // A peer copy reads the device's own memory. A device with unified memory may have its bytes in host memory instead.
        if (parameters.peer == Parameters::Peer::direct && parameters.unified == Parameters::Unified::no) {
            shared.peers = peers_;
            peers_->add(space, arena, parameters.link);
        }
        std::vector<int> processors = devices::usable_processors();
        driver::DeviceInfo info =
            device_info(index, is_coherent ? host_space : space, parameters, static_cast<uint32_t>(processors.size()));
        info.memory_bytes = arena->size().value;
        auto device = std::make_unique<DiscreteDevice>(std::move(info), std::move(shared), std::move(processors));
        POLDER_TRY(device->start());
        return device;
    }

    const std::shared_ptr<Peers> peers_ = std::make_shared<Peers>();
};

}  // namespace

std::unique_ptr<driver::Driver> make_driver() { return std::make_unique<DiscreteDriver>(); }

}  // namespace polder::discrete
