// Two parts: Peers grants the GPUs of one process access to each other's memory; CudaDevice describes one GPU and passes calls on to
// its memory, queues and kernels.
#include <algorithm>
#include <cuda/cuda_device.h>
#include <cuda/cuda_queue.h>
#include <host/clock.h>

namespace polder::cuda {
namespace {

constexpr uint32_t nvidia_vendor_id = 0x10de;

uint64_t memory_of(const CudaContext& context, const Parameters& parameters) {
    return std::min(context.facts.memory_bytes, parameters.memory_bytes.value_or(context.facts.memory_bytes));
}

driver::DeviceInfo info_of(const CudaContext& context, SpaceId space, const Parameters& parameters) {
    const GpuFacts& gpu = context.facts;
    const int version = gpu.driver_version;
    const uint64_t memory_bytes = memory_of(context, parameters);
    driver::DeviceInfo info;
    info.name = gpu.name;
    info.vendor = "NVIDIA Corporation";
    info.vendor_id = nvidia_vendor_id;
    info.driver_version =
        POLDER_VERSION " (CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10) + ")";
    info.type = driver::DeviceType::gpu;
    info.space = space;
    info.compute_units = gpu.multiprocessors;
    info.clock_mhz = gpu.clock_mhz;
    info.max_work_group_size = gpu.max_threads_per_block;
    for (int d = 0; d < 3; ++d)
        info.max_work_item_sizes[d] = std::min(gpu.max_block[d], gpu.max_threads_per_block);
    info.memory_bytes = memory_bytes;
    // Mapping memory takes 1 to 10 ms for each GiB, so regions are large, but not all of the memory, which other processes may use, too.
    info.region_bytes = std::min<uint64_t>(uint64_t{1} << 30, memory_bytes / 16);
    info.global_cache = {128, gpu.l2_bytes};
    info.local_memory_is_dedicated = true;
    info.base_address_alignment = 512;
    info.timer_resolution_ns = 1000;
    info.native_kernels = false;
    info.code.format = driver::CodeFormat::ptx;
    info.code.processor = "sm_" + std::to_string(gpu.compute_major) + std::to_string(gpu.compute_minor);
    info.code.sub_group_size = gpu.warp_size;
    info.code.local_memory_bytes = gpu.shared_bytes;
    // Programs are written for this size on NVIDIA's GPUs (decision 213). A kernel may have all.
    info.planned_local_memory_bytes =
        std::min(gpu.shared_bytes, parameters.local_memory_bytes.value_or(gpu.planned_shared_bytes));
    return info;
}

// Bytes per second in one direction over all NVLinks of a GPU, and over a PCI Express slot with 16 lanes, by generation (NVIDIA's data sheets
// of V100, A100, H100 and B200). CUDA does not report bandwidths; these are used only to compare links.
struct LinkSpeeds {
    int compute_major;
    uint64_t nvlink_bytes_per_second;
    uint64_t pcie_bytes_per_second;
};
constexpr uint64_t giga = 1'000'000'000;
constexpr LinkSpeeds link_speeds[] = {
    {10, 900 * giga, 64 * giga}, {9, 450 * giga, 64 * giga}, {8, 300 * giga, 32 * giga}, {7, 150 * giga, 16 * giga}};

LinkSpeeds speeds_of(const CudaContext& gpu) {
    for (const LinkSpeeds& speeds : link_speeds)
        if (gpu.facts.compute_major >= speeds.compute_major)
            return speeds;
    return {0, 0, 0};
}

// CUDA ranks the links of a machine: 0 is the best one. Only NVLink has atomic operations.
std::optional<driver::PeerLink> link_between(const CudaContext& reader, const CudaContext& other) {
    const CudaApi& api = reader.api;
    int can = 0;
    if (api.device_can_access_peer(&can, reader.device, other.device) != code_success || !can)
        return std::nullopt;
    const auto ask = [&](PeerAttribute attribute) {
        int value = 0;
        return api.peer_attribute(&value, attribute, reader.device, other.device) == code_success ? value : 0;
    };
    const LinkSpeeds one = speeds_of(reader);
    const LinkSpeeds two = speeds_of(other);
    const bool is_nvlink = ask(peer_native_atomics) != 0;
    return driver::PeerLink{static_cast<uint32_t>(1 + std::max(0, ask(peer_performance_rank))),
                            is_nvlink ? std::min(one.nvlink_bytes_per_second, two.nvlink_bytes_per_second)
                                      : std::min(one.pcie_bytes_per_second, two.pcie_bytes_per_second)};
}

}  // namespace

// --- peers ---

void Peers::add(CudaDevice& device) {
    Lock lock(mutex_);
    devices_.reserve(devices_.size() + 1);
    for (CudaDevice* const other : devices_) {
        connect(device, *other);
        connect(*other, device);
    }
    devices_.push_back(&device);
}

void Peers::connect(const CudaDevice& reader, CudaDevice& other) {
    const std::optional<driver::PeerLink> link = link_between(*reader.context_, *other.context_);
    if (!link)
        return;
    connections_.reserve(connections_.size() + 1);
    if (other.memory_->grant_to(reader.context_->device))
        connections_.push_back({&reader, &other, *link});
}

void Peers::remove(CudaDevice& device) noexcept {
    Lock lock(mutex_);
    std::erase(devices_, &device);
    std::erase_if(connections_, [&device](const Connection& connection) {
        return connection.reader == &device || connection.other == &device;
    });
}

std::optional<driver::PeerLink> Peers::link(const CudaDevice& device, SpaceId space) const {
    Lock lock(mutex_);
    for (const Connection& connection : connections_)
        if (connection.reader == &device && connection.other->info_.space == space)
            return connection.link;
    return std::nullopt;
}

// --- the device ---

Result<std::unique_ptr<driver::Device>> CudaDevice::open(const CudaApi& api, int ordinal, SpaceId space,
                                                         std::shared_ptr<SharedByGpus> shared,
                                                         const Parameters& parameters) {
    POLDER_ASSIGN(context, CudaContext::open(api, ordinal));
    POLDER_ASSIGN(memory, CudaMemory::create(*context, memory_of(*context, parameters)));
    std::unique_ptr<CudaDevice> device(
        new CudaDevice(std::move(context), std::move(memory), space, std::move(shared), parameters));
    device->shared_->peers.add(*device);
    return device;
}

CudaDevice::CudaDevice(std::unique_ptr<CudaContext> context, std::unique_ptr<CudaMemory> memory, SpaceId space,
                       std::shared_ptr<SharedByGpus> shared, const Parameters& parameters)
    : context_(std::move(context)), memory_(std::move(memory)), shared_(std::move(shared)),
      staging_(*context_, parameters), info_(info_of(*context_, space, parameters)) {}

CudaDevice::~CudaDevice() {
    shared_->peers.remove(*this);
    shared_->regions.remove_all(*context_);
}

Result<std::unique_ptr<driver::Queue>> CudaDevice::create_queue(driver::QueueRole) {
    return CudaQueue::create({*context_, staging_, shared_->regions, watch_});
}

Result<std::unique_ptr<driver::LoadedKernel>> CudaDevice::load(const driver::KernelCode& code) {
    const auto* const ptx = std::get_if<driver::TargetCode>(&code);
    if (!ptx || ptx->format != driver::CodeFormat::ptx)
        return fail(Status::out_of_resources, info_.name + " executes PTX only");
    return CudaKernel::load(*context_, modules_, *ptx);
}

Result<std::unique_ptr<driver::Device>> CudaDevice::create_sub_device(std::span<const uint32_t>) {
    return fail(Status::device_partition_failed);  // max_sub_devices is 0
}

uint64_t CudaDevice::now_ns() const { return devices::now_ns(); }

// The other GPU's memory is accessible to this one, at the same addresses.
driver::Timepoint CudaDevice::copy(driver::Queue& queue, SpaceId, const driver::CopyOperation& operation,
                                   const driver::Submission& submission) {
    return queue.copy(operation, submission);
}

driver::Timepoint CudaDevice::copy_all(driver::Queue& queue, SpaceId, std::span<const driver::CopyOperation> operations,
                                       const driver::Submission& submission) {
    return static_cast<CudaQueue&>(queue).copy_all(operations, submission);
}

}  // namespace polder::cuda
