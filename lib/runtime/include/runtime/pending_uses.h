// PendingUses: how many commands that are held back (PendingCommand) use a storage. Once a command is submitted, the storage's own
// residency knows of it; before that, only this does. References say nothing: command buffers and buffers over an allocation refer to
// its storage too.
//
// One for the process, because only contexts with allocations (address_map.h) use it. Any thread.
#pragma once

#include <memory/storage.h>

#include <vector>

namespace polder::runtime {

// Counts one command for each of `storages` until it is destroyed. The command keeps the storages.
class PendingUses {
public:
    PendingUses() = default;
    explicit PendingUses(std::vector<const memory::Storage*> storages);
    PendingUses(const PendingUses&) = delete;
    PendingUses& operator=(const PendingUses&) = delete;
    ~PendingUses();

    // Returns when no command that is held back uses the storage.
    static void wait_until_none(const memory::Storage& storage);

private:
    std::vector<const memory::Storage*> storages_;
};

}  // namespace polder::runtime
