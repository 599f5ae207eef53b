// The ledger's one implementation.
#pragma once

#include <base/mutex.h>
#include <memory/ledger.h>

namespace polder::memory {

class LedgerImpl final : public Ledger {
public:
    void add(SpaceId from, SpaceId to, ByteCount moved, ByteCount needed) override;
    [[nodiscard]] std::vector<Entry> entries() const override;
    [[nodiscard]] uint64_t moved_bytes() const override;
    void reset() override;

private:
    mutable Mutex mutex_;
    std::vector<Entry> entries_ POLDER_GUARDED_BY(mutex_);  // a handful
};

} // namespace polder::memory
