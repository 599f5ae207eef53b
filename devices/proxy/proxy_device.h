// ProxyDevice: a device of another OpenCL implementation as a device of Polder's. See proxy_memory.h for its memory and
// proxy_queue.h for how it executes. Any thread.
#pragma once

#include <memory>
#include <polder/program_binaries.h>
#include <proxy/parameters.h>
#include <proxy/proxy_memory.h>
#include <proxy/proxy_program.h>

namespace polder::proxy {

class ProxyDevice final : public driver::Device, public driver::ProgramBinaries {
public:
    [[nodiscard]] static Result<std::unique_ptr<driver::Device>> open(const ForeignDevice& foreign,
                                                                      const Parameters& parameters, SpaceId space);

    [[nodiscard]] const driver::DeviceInfo& info() const override { return info_; }
    [[nodiscard]] Result<driver::Memory> reserve_memory(ByteCount size) override { return memory_->reserve(size); }
    void release_memory(driver::Memory memory) override { memory_->release(memory); }
    [[nodiscard]] ByteCount available_memory() const override { return memory_->available(); }
    [[nodiscard]] Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole role) override;
    [[nodiscard]] Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::KernelCode& code) override;
    [[nodiscard]] Result<std::unique_ptr<driver::Device>>
    create_sub_device(std::span<const uint32_t> compute_units) override;
    [[nodiscard]] uint64_t now_ns() const override;

    [[nodiscard]] driver::ProgramBinaries* program_binaries() override { return this; }
    // Of ProgramBinaries, in program_binaries.cpp.
    [[nodiscard]] std::string machine_code_of(const driver::LoadedKernel& kernel) override;
    [[nodiscard]] Result<Binary> read(std::span<const std::byte> bytes) override;

private:
    ProxyDevice(std::unique_ptr<ForeignContext> context, driver::DeviceInfo info, std::unique_ptr<ProxyMemory> memory)
        : context_(std::move(context)), info_(std::move(info)), memory_(std::move(memory)) {}

    const std::unique_ptr<ForeignContext> context_;
    const driver::DeviceInfo info_;
    const std::unique_ptr<ProxyMemory> memory_;
    ProgramCache programs_;
};

}  // namespace polder::proxy
