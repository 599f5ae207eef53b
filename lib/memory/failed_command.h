// FailedCommand: when a command fails before it is submitted, notes in its storages that a transfer may be in flight for which no command
// of the application waits. The application may free the memory of a buffer (CL_MEM_USE_HOST_PTR) when its commands are complete or have
// failed, so releasing the buffer must wait for such transfers (Storage::remove_handle).
// Lives on the stack of one call, under the locks of the storages.
#pragma once

#include "storage_impl.h"

#include <memory/domain.h>

#include <span>

namespace polder::memory {

class [[nodiscard]] FailedCommand {
public:
    // `uses` must outlive this object.
    explicit FailedCommand(std::span<const Use> uses) : uses_(uses) {}
    ~FailedCommand() {
        if (!has_succeeded_) [[unlikely]]
            for (const Use& use : uses_)
                static_cast<StorageImpl&>(*use.storage).note_unknown_transfer();
    }
    FailedCommand(const FailedCommand&) = delete;
    FailedCommand& operator=(const FailedCommand&) = delete;
    void has_succeeded() noexcept { has_succeeded_ = true; }

private:
    const std::span<const Use> uses_;
    bool has_succeeded_ = false;
};

}  // namespace polder::memory
