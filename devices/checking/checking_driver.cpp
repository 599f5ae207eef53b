// Each device of the wrapped driver gets a CheckedDevice. Functions check their arguments, call the wrapped device, and check its
// result; timepoints are converted between the queues of both sides (checking_queue.cpp).
#include <algorithm>
#include <checking/checking_driver.h>
#include <checking/checking_queue.h>
#include <polder/program_binaries.h>

namespace polder::devices {
namespace {

class CheckedDevice final : public driver::Device,
                            public driver::PeerCopy,
                            public driver::ProgramBinaries,
                            public driver::VirtualMemory,
                            public driver::UnifiedMemory {
public:
    CheckedDevice(std::unique_ptr<driver::Device> device, std::shared_ptr<CheckedMemory> memory)
        : device_(std::move(device)), memory_(std::move(memory)) {
        if (!memory_)
            memory_ = std::make_shared<CheckedMemory>(info(), device_->unified_memory() ? CheckedMemory::Unified::yes
                                                                                        : CheckedMemory::Unified::no);
        must(!info().name.empty() && info().compute_units != 0 && info().max_work_group_size != 0,
             "a device does not describe itself");
        must(info().planned_local_memory_bytes <= info().code.local_memory_bytes,
             "a device plans with more local memory than a work-group can have");
    }

    [[nodiscard]] const driver::DeviceInfo& info() const override { return device_->info(); }

    [[nodiscard]] Result<driver::Memory> reserve_memory(ByteCount size) override {
        must(size.value != 0, "reserve_memory of nothing");
        must(!info().space.is_host(), "reserve_memory of a device that computes in host memory");
        POLDER_ASSIGN(memory, device_->reserve_memory(size));
        memory_->reserved(memory, size);
        return memory;
    }
    void release_memory(driver::Memory memory) override {
        memory_->released(memory);
        device_->release_memory(memory);
    }
    [[nodiscard]] ByteCount available_memory() const override { return device_->available_memory(); }

    [[nodiscard]] Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole role) override {
        POLDER_ASSIGN(queue, device_->create_queue(role));
        return std::make_unique<CheckedQueue>(std::move(queue), info(), memory_);
    }
    [[nodiscard]] Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::KernelCode& code) override {
        const bool is_host_code = std::holds_alternative<driver::HostCode>(code);
        must(is_host_code == (info().code.format == driver::CodeFormat::host_function), "code of another format");
        POLDER_ASSIGN(kernel, device_->load(code));
        must(kernel != nullptr, "load returned neither a kernel nor an error");
        return kernel;
    }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>>
    create_sub_device(std::span<const uint32_t> compute_units) override {
        must(info().max_sub_devices > 1, "a device that cannot be divided is divided");
        std::vector<uint32_t> sorted(compute_units.begin(), compute_units.end());
        std::sort(sorted.begin(), sorted.end());
        must(!sorted.empty() && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
                 sorted.back() < info().compute_units,
             "a sub-device's compute units");
        POLDER_ASSIGN(device, device_->create_sub_device(compute_units));
        must(device->info().space == info().space, "a sub-device has another memory");
        return std::make_unique<CheckedDevice>(std::move(device), memory_);
    }
    [[nodiscard]] std::span<const driver::AffinityDomain> affinity_domains() override {
        return device_->affinity_domains();
    }
    [[nodiscard]] uint64_t now_ns() const override { return device_->now_ns(); }

    [[nodiscard]] driver::PeerCopy* peer_copy() override { return device_->peer_copy() ? this : nullptr; }
    [[nodiscard]] driver::HostRegions* host_regions() override {
        return memory_->host_regions(device_->host_regions());
    }
    [[nodiscard]] const driver::KernelAddresses* kernel_addresses() const override {
        return device_->kernel_addresses();
    }

    [[nodiscard]] driver::VirtualMemory* virtual_memory() override {
        return device_->virtual_memory() ? this : nullptr;
    }
    [[nodiscard]] driver::UnifiedMemory* unified_memory() override {
        return device_->unified_memory() ? this : nullptr;
    }

    [[nodiscard]] driver::ProgramBinaries* program_binaries() override {
        return device_->program_binaries() ? this : nullptr;
    }

    [[nodiscard]] std::string machine_code_of(const driver::LoadedKernel& kernel) override {
        return device_->program_binaries()->machine_code_of(kernel);
    }
    [[nodiscard]] Result<Binary> read(std::span<const std::byte> bytes) override {
        POLDER_ASSIGN(binary, device_->program_binaries()->read(bytes));
        must(!binary.machine_code.empty(), "a binary without machine code");
        return binary;
    }

    [[nodiscard]] Alignment page() const override { return device_->virtual_memory()->page(); }
    [[nodiscard]] bool is_slow() const override { return device_->virtual_memory()->is_slow(); }
    [[nodiscard]] Result<DeviceAddress> reserve_addresses(ByteCount size) override {
        must(size.value != 0, "reserve_addresses of nothing");
        POLDER_ASSIGN(address, device_->virtual_memory()->reserve_addresses(size));
        memory_->reserved_addresses(address, size.value, page());
        return address;
    }
    void release_addresses(driver::Memory range) override {
        memory_->released_addresses(range);
        device_->virtual_memory()->release_addresses(range);
    }
    [[nodiscard]] Result<void> commit(driver::Memory range) override {
        memory_->committing(range, page());
        POLDER_TRY(device_->virtual_memory()->commit(range));
        memory_->committed(range);
        return {};
    }
    void decommit(driver::Memory range) override {
        memory_->decommitting(range, page());
        device_->virtual_memory()->decommit(range);
    }

    [[nodiscard]] driver::Timepoint map(driver::Queue& queue, driver::Memory range,
                                        const driver::Submission& submission) override {
        must(range.size != 0 && range.address.value != 0, "a map of nothing");
        return static_cast<CheckedQueue&>(queue).pass_on(
            submission, [&](driver::Queue& inner, const driver::Submission& unwrapped) {
                return device_->unified_memory()->map(inner, range, unwrapped);
            });
    }
    [[nodiscard]] driver::Timepoint unmap(driver::Queue& queue, driver::Memory range,
                                          const driver::Submission& submission) override {
        must(range.size != 0 && range.address.value != 0, "an unmap of nothing");
        return static_cast<CheckedQueue&>(queue).pass_on(
            submission, [&](driver::Queue& inner, const driver::Submission& unwrapped) {
                return device_->unified_memory()->unmap(inner, range, unwrapped);
            });
    }

    [[nodiscard]] std::optional<driver::PeerLink> link(SpaceId space) const override {
        const std::optional<driver::PeerLink> link = device_->peer_copy()->link(space);
        must(!link || link->hops != 0, "a link without hops");
        must(!link || space != info().space, "a link from a device to itself");
        return link;
    }
    [[nodiscard]] driver::Timepoint copy(driver::Queue& queue, SpaceId from_space,
                                         const driver::CopyOperation& operation,
                                         const driver::Submission& submission) override {
        check_peer_copy(from_space, operation);
        return static_cast<CheckedQueue&>(queue).pass_on(
            submission, [&](driver::Queue& inner, const driver::Submission& unwrapped) {
                return device_->peer_copy()->copy(inner, from_space, operation, unwrapped);
            });
    }
    [[nodiscard]] driver::Timepoint copy_all(driver::Queue& queue, SpaceId from_space,
                                             std::span<const driver::CopyOperation> operations,
                                             const driver::Submission& submission) override {
        must(!operations.empty(), "a list of no peer copies");
        for (const driver::CopyOperation& operation : operations)
            check_peer_copy(from_space, operation);
        return static_cast<CheckedQueue&>(queue).pass_on(
            submission,
            [&](driver::Queue& inner, const driver::Submission& unwrapped) {
                return device_->peer_copy()->copy_all(inner, from_space, operations, unwrapped);
            },
            operations.size());
    }

private:
    void check_peer_copy(SpaceId from_space, const driver::CopyOperation& operation) const {
        using Place = driver::CopyOperation::Place;
        check_rows(operation);
        must(operation.from.place == Place::device && operation.to.place == Place::device,
             "a peer copy from or to host memory");
        must(memory_->contains(operation.to.address, bytes_of(operation.shape, operation.to.layout)),
             "a peer copy leaves the memory that was reserved");
        must(link(from_space).has_value(), "a peer copy from a memory that is out of reach");
    }

    const std::unique_ptr<driver::Device> device_;
    std::shared_ptr<CheckedMemory> memory_;
};

class CheckingDriver final : public driver::Driver {
public:
    explicit CheckingDriver(std::unique_ptr<driver::Driver> driver) : driver_(std::move(driver)) {}

    [[nodiscard]] std::string_view name() const override { return driver_->name(); }
    [[nodiscard]] uint32_t count() const override { return driver_->count(); }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>> open(uint32_t index, SpaceId space,
                                                               std::string_view parameters) override {
        POLDER_ASSIGN(device, driver_->open(index, space, parameters));
        must(device->info().space.is_host() || device->info().space == space, "a device has another memory space");
        return std::make_unique<CheckedDevice>(std::move(device), nullptr);
    }

private:
    const std::unique_ptr<driver::Driver> driver_;
};

}  // namespace

std::unique_ptr<driver::Driver> make_checking_driver(std::unique_ptr<driver::Driver> driver) {
    return std::make_unique<CheckingDriver>(std::move(driver));
}

}  // namespace polder::devices
