// Domain: the memory layer as the runtime sees it; one per context.
//
// Every function below that takes an Execution is called when the command is *submitted*: all events it
// waits for have timepoints, which stand in `waits`. It plans against the residency of this moment, puts the
// transfers it needs on hidden queues, submits the command's own operation to `queue` behind them, commits the
// new versions and returns the timepoint of the command's completion. Nothing blocks.
//
// Memory was reserved at enqueue by `reserve`, so these functions fail only for reasons nobody can
// foresee (device lost); the command then counts as failed. What was not reserved is reserved first.
//
// Threads: any thread may call any function; the domain's lock covers planning, submission and commit, so
// two commands are planned one after the other, in the order in which their functions are entered. Memory is never
// waited for under it.
// Source of the scheme: see doc/memory.md.
#pragma once

#include <memory/ledger.h>
#include <memory/space.h>
#include <memory/storage.h>

#include <memory>
#include <polder/driver.h>
#include <polder/result.h>
#include <span>
#include <utility>

namespace polder::memory {

// Where and after what a command executes.
struct Execution {
    driver::Queue& queue;   // of the device the command was enqueued to
    SpaceId space;          // where that device computes
    driver::Waits waits;    // of the command's event dependencies
    driver::OperationTimes* times = nullptr;
};

// Rows of bytes within a storage: a plain range is one row.
struct StorageRect {
    uint64_t offset = 0;  // of the first byte
    driver::RectShape shape;
    driver::RectLayout layout;

    static StorageRect of(ByteRange range) { return {range.begin, {range.size(), 1, 1}, {}}; }
};

// What a kernel does to one byte range of a storage.
struct Use {
    Storage* storage = nullptr;
    ByteRange range;
    Access access = Access::read_write;
};

enum class MapAccess : uint8_t { read, write, read_write, write_invalidate };

class DomainImpl;

// The planned memory of one kernel launch: a value that holds the domain's lock until committed or destroyed, so
// it must be short-lived (acquire, launch, commit) and no storage may lose its last reference meanwhile.
class [[nodiscard]] Acquisition {
public:
    Acquisition(Acquisition&& other) noexcept : domain_(std::exchange(other.domain_, nullptr)) {}
    Acquisition& operator=(Acquisition&&) = delete;
    ~Acquisition() {
        if (domain_)
            release();
    }
    // All that the launch must wait for: Execution::waits and the hidden transfers, without what is complete
    // or implied by the order of its queue. Valid until commit.
    [[nodiscard]] driver::Waits waits() const;
    // Address of uses[index].range.begin in the executing device's memory.
    [[nodiscard]] DeviceAddress address(size_t index) const;
    // The launch was submitted and completes at `done`. Lets go of the lock.
    void commit(driver::Timepoint done);

private:
    friend class DomainImpl;
    explicit Acquisition(DomainImpl& domain) : domain_(&domain) {}
    void release();
    DomainImpl* domain_;
};

class Domain {
public:
    // `spaces` are those of the context's devices, plus host memory. They outlive the domain.
    [[nodiscard]] static std::unique_ptr<Domain> create(std::span<Space* const> spaces);
    virtual ~Domain() = default;

    // --- at enqueue ---
    // Makes sure that `storage` has memory in `space`; a no-op when it has.
    // mem_object_allocation_failure with a report (asked, free, largest free, live) otherwise. The first time that bytes
    // could have to go from this device to another through host memory, also reserves 1 MiB there for them.
    // `queue` is that of the command, if it is known: memory that only this queue still uses is used again at once.
    [[nodiscard]] virtual Result<void> reserve(Storage& storage, SpaceId space,
                                               const driver::Queue* queue = nullptr) = 0;
    // All of them or none: what one command uses.
    [[nodiscard]] virtual Result<void> reserve(std::span<Storage* const> storages, SpaceId space,
                                               const driver::Queue* queue = nullptr) = 0;
    [[nodiscard]] virtual bool is_reserved(const Storage& storage, SpaceId space) const = 0;
    // Likewise for the place where the host sees mapped bytes.
    [[nodiscard]] virtual Result<void> reserve_map(Storage& storage) = 0;

    // --- at submission ---
    // A kernel (or native kernel, in space 0) and what it uses; `uses` is not kept. The caller submits the launch
    // to execution.queue with Acquisition::waits, then commits.
    [[nodiscard]] virtual Result<Acquisition> acquire(const Execution& execution, std::span<const Use> uses) = 0;
    [[nodiscard]] virtual Result<driver::Timepoint> read(const Execution& execution, Storage& from,
                                                         const StorageRect& rect, std::byte* to,
                                                         driver::RectLayout to_layout) = 0;
    [[nodiscard]] virtual Result<driver::Timepoint> write(const Execution& execution, Storage& to,
                                                          const StorageRect& rect, const std::byte* from,
                                                          driver::RectLayout from_layout) = 0;
    // Both rects have the same shape; the caller has excluded overlap within one storage.
    [[nodiscard]] virtual Result<driver::Timepoint> copy(const Execution& execution, Storage& from,
                                                         const StorageRect& from_rect, Storage& to,
                                                         const StorageRect& to_rect) = 0;
    [[nodiscard]] virtual Result<driver::Timepoint> fill(const Execution& execution, Storage& to, ByteRange range,
                                                         std::span<const std::byte> pattern) = 0;
    // Makes the newest bytes present in `target` (CL_MIGRATE_MEM_OBJECT_HOST: host_space), or, when
    // `content` is undefined, makes `target` their only holder without moving anything.
    enum class Content : uint8_t { kept, undefined };
    [[nodiscard]] virtual Result<driver::Timepoint> migrate(const Execution& execution, std::span<const Use> ranges,
                                                            SpaceId target, Content content) = 0;
    // After completion the bytes are valid at storage.map_address() + range.begin.
    [[nodiscard]] virtual Result<driver::Timepoint> map(const Execution& execution, Storage& storage,
                                                        const StorageRect& rect, MapAccess access) = 0;
    // With a writing access, the mapped bytes become the newest version, held by the map's place alone.
    [[nodiscard]] virtual Result<driver::Timepoint> unmap(const Execution& execution, Storage& storage,
                                                          const StorageRect& rect, MapAccess access) = 0;

    [[nodiscard]] virtual Ledger& ledger() = 0;
};

}  // namespace polder::memory
