// The ledger: per pair of memory spaces, the bytes that were moved, and the bytes that a perfect plan would have moved.
//
// The two are counted independently. Moved bytes are counted from the operations that were submitted. Needed bytes are those that commands
// read and that were out of date in the memory where they are read; they are counted from the residency, without the plan.
// Any thread. Counting never fails and takes no lock. When `reset` is called while another thread counts, a count may be lost, or a
// counter may not be reset.
#pragma once

#include <polder/types.h>
#include <vector>

namespace polder::memory {

class Ledger {
public:
    struct Entry {
        SpaceId from;
        SpaceId to;
        uint64_t transfers = 0;
        uint64_t moved_bytes = 0;
        uint64_t needed_bytes = 0;
    };
    virtual ~Ledger() = default;
    // The pairs with at least one transfer, in ascending order of (from, to). A pair of a space with itself counts the bytes that were
    // copied there when replicas grew (replicas.h), which no command needed. Transfers between application and host
    // replicas count too; reads and writes through host pointers count as pairs with host_space.
    [[nodiscard]] virtual std::vector<Entry> entries() const = 0;
    // The bytes that were moved between different spaces.
    [[nodiscard]] virtual uint64_t moved_bytes() const = 0;
    // The bytes that were copied within a space.
    [[nodiscard]] virtual uint64_t gathered_bytes() const = 0;
    [[nodiscard]] virtual uint64_t needed_bytes() const = 0;
    virtual void reset() = 0;
};

}  // namespace polder::memory
