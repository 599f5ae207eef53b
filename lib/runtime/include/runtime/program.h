// Program: source, binaries or built-in code, and per device what became of it.
//
// Devices with the same compiler target share one build. Builds may run on a thread of their own when the
// application gives a callback. Any thread.
#pragma once

#include <base/mutex.h>
#include <compiler/compiler.h>
#include <runtime/context.h>
#include <map>
#include <string>
#include <vector>

namespace polder::runtime {

// The built code of a program for one device: machine code, and the program-scope variables in the device's
// memory. Kept alive by kernels and by queues while launches are in flight.
class DeviceCode final : public RefCounted {
public:
    static Result<Ref<DeviceCode>> create(Device& device, std::shared_ptr<compiler::Executable> executable,
                                          std::shared_ptr<const compiler::Module> module);
    ~DeviceCode() override;

    struct Kernel {
        const compiler::CompiledKernel* compiled = nullptr;
        std::unique_ptr<driver::LoadedKernel> loaded;
    };
    // Compiles and loads at first request.
    [[nodiscard]] Result<const Kernel*> kernel(const compiler::KernelInfo& info,
                                               const std::array<uint64_t, 3>& local_size);
    // 0 when the program has no program-scope variables; initialised by the first call.
    [[nodiscard]] Result<DeviceAddress> program_variables(driver::Queue& queue);

private:
    DeviceCode() = default;
    struct State;
    std::unique_ptr<State> state_;
};

class Program final : public Object {
public:
    static constexpr Kind kind = Kind::program;
    static constexpr Status invalid = Status::invalid_program;
    // The rest is described in program.cpp's folder by its author.
};

} // namespace polder::runtime
