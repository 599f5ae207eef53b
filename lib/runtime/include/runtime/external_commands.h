// The commands that acquire the bytes of imported memory from other users, and release them (runtime/external_memory.h).
#pragma once

#include <runtime/buffer_commands.h>

#include <vector>

namespace polder::runtime {

// Acquire: the bytes in host memory become the newest version. Release: the newest bytes are transferred to host memory.
// Both are migrations to host memory. A dma-buf or a copied file needs calls of the host: before an acquire, and after a release.
class HandOverCommand final : public Command {
public:
    enum class Direction : uint8_t { acquire, release };
    // Memory objects with external memory.
    HandOverCommand(std::vector<Ref<MemObject>> objects, Direction direction);
    Result<void> reserve(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        migration_.add_storages(storages);
    }

private:
    [[nodiscard]] driver::Timepoint call(const memory::Execution& execution, driver::Waits waits) const;

    std::vector<Ref<ExternalMemory>> called_;  // the memories that need calls of the host
    MigrateCommand migration_;
    Direction direction_;
};

}  // namespace polder::runtime
