// Prepared: its constructor prepares the ranges of one command for commits (Residency::prepare); its destructor merges the pieces
// again. Merged: only merges, for one range that the command prepares itself.
// Both live on the stack of one call, under the storage's lock.
#pragma once

#include "residency/residency.h"
#include "transfer/rect.h"

namespace polder::memory {

class [[nodiscard]] Prepared {
public:
    // `rows` must outlive this object. Each byte gets room for `touches` commits.
    Prepared(Residency& residency, const Rows& rows, uint32_t touches) : residency_(residency), rows_(rows) {
        residency.prepare(rows.view(), touches);
    }
    ~Prepared() { residency_.merge(rows_.view()); }
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;

private:
    Residency& residency_;
    const Rows& rows_;
};

class [[nodiscard]] Merged {
public:
    Merged(Residency& residency, ByteRange range) : residency_(residency), range_(range) {}
    ~Merged() { residency_.merge({&range_, 1}); }
    Merged(const Merged&) = delete;
    Merged& operator=(const Merged&) = delete;

private:
    Residency& residency_;
    const ByteRange range_;
};

}  // namespace polder::memory
