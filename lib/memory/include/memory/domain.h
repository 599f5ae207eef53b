// Domain: the interface of the memory layer for the runtime; one per context.
//
// Every function below that takes an Execution is called when the command is *submitted*: all events it waits for have
// timepoints, which are listed in `waits`. The function plans with the current residency, submits the necessary transfers to hidden
// queues, submits the command's own operation to `queue`, commits the new versions, and returns the timepoint of
// the command's completion.
//
// `reserve` has reserved memory at enqueue; the functions reserve memory that is missing. They fail when the host
// has no memory (std::bad_alloc) or a device is lost. All steps that may fail come before the command's operation is
// submitted, and the commit after it cannot fail. So a failed launch, write or fill has not submitted its operation. When a
// read or copy of several parts fails halfway, the call waits for the parts that were submitted. In all other cases
// no function waits for a device.
//
// Threads: any thread may call any function. A command locks the storages that it uses while it is planned, submitted and
// committed (storage_guard.h), so commands on the same storage are planned one after the other, and commands on different
// storages do not wait for each other. No function waits for memory under a lock.
// The algorithm is described in doc/memory.md.
#pragma once

#include <base/function_ref.h>
#include <memory/ledger.h>
#include <memory/space.h>
#include <memory/storage.h>

#include <memory>
#include <polder/driver.h>
#include <polder/result.h>
#include <span>
#include <utility>
#include <vector>

namespace polder::memory {

// The queue that executes a command, and what the command waits for.
struct Execution {
    driver::Queue& queue;  // a queue of the device to which the command was enqueued
    SpaceId space;  // the memory in which that device computes
    driver::Waits waits;  // the timepoints of the events that the command waits for
    driver::OperationTimes* times = nullptr;
};

// Rows of bytes within a storage: a plain range is one row.
struct StorageRect {
    uint64_t offset = 0;  // of the first byte
    driver::RectShape shape;
    driver::RectLayout layout;

    // The range from the first byte of the first row to the last byte of the last row.
    [[nodiscard]] ByteRange span() const {
        return {offset, offset + (shape.rows - 1) * layout.row_pitch + (shape.slices - 1) * layout.slice_pitch +
                            shape.row_bytes};
    }
    static StorageRect of(ByteRange range) { return {range.begin, {range.size(), 1, 1}, {}}; }
};

// How a command accesses one byte range of a storage.
struct Use {
    Storage* storage = nullptr;
    ByteRange range;
    Access access = Access::read_write;
};

enum class MapAccess : uint8_t { read, write, read_write, write_invalidate };

// Submits the command's own operation to Execution::queue and returns its timepoint. `waits` are all timepoints that it must wait for:
// Execution::waits and those of hidden transfers, except for those that are complete or implied by the order of the queue.
// `addresses[i]` is the address of uses[i].range.begin in the executing device's memory. Both are valid during the
// call, which runs under the locks of the storages and must not call the domain.
using SubmitLaunch = FunctionRef<driver::Timepoint(driver::Waits waits, std::span<const DeviceAddress> addresses)>;

// Keeps the address of mapped bytes valid, from clEnqueueMapBuffer until the unmap command is submitted.
class [[nodiscard]] MapPin {
public:
    MapPin() = default;
    explicit MapPin(Storage& storage) : storage_(Ref<Storage>::share(&storage)) { storage_->pin_map(); }
    MapPin(MapPin&&) noexcept = default;
    MapPin& operator=(MapPin&& other) noexcept {
        std::swap(storage_, other.storage_);
        return *this;
    }
    ~MapPin() {
        if (storage_)
            storage_->unpin_map();
    }

private:
    Ref<Storage> storage_;
};

class Domain;

// The uses of a command that waits for events, so that eviction can prefer memory that is not needed soon.
class [[nodiscard]] Announcement {
public:
    Announcement() = default;
    // The storages and the domain outlive the object.
    Announcement(Domain& domain, std::vector<Use> uses, SpaceId space);
    Announcement(Announcement&& other) noexcept
        : domain_(std::exchange(other.domain_, nullptr)), number_(other.number_), uses_(std::move(other.uses_)) {}
    Announcement& operator=(Announcement&&) = delete;
    ~Announcement();

private:
    Domain* domain_ = nullptr;
    uint64_t number_ = 0;
    std::vector<Use> uses_;
};

struct DomainOptions {
    // Storages up to this size always get one block for all of their bytes.
    ByteCount whole_up_to{uint64_t{64} << 10};
    // The same in host memory. Up to this size, using pages of a freed block again saves more time than unused pages cost.
    ByteCount whole_on_host_up_to{uint64_t{4} << 20};
};

class Domain {
public:
    // `spaces` are those of the context's devices, plus host memory. They outlive the domain.
    [[nodiscard]] static std::unique_ptr<Domain> create(std::span<Space* const> spaces,
                                                        const DomainOptions& options = {});
    virtual ~Domain() = default;

    // --- at enqueue ---
    // Makes sure that each of the `uses` of one command has contiguous memory in `space`: all of them, or none when
    // the call fails. Does nothing when they have it. When there is no room, other storages are evicted (domain_evict.cpp). The
    // memory may be evicted again before the command is submitted; the submission then reserves it once more.
    // mem_object_allocation_failure with a report (requested, free,
    // largest free and live bytes) when there is no room. Also reserves 1 MiB of host memory for staging, once, when
    // transfers between two devices through host memory become possible.
    // `queue` is the command's driver queue, if it is known: memory that only this queue still uses can be used again at once.
    [[nodiscard]] virtual Result<void> reserve(std::span<const Use> uses, SpaceId space,
                                               const driver::Queue* queue = nullptr) = 0;
    [[nodiscard]] Result<void> reserve(Storage& storage, ByteRange range, SpaceId space,
                                       const driver::Queue* queue = nullptr) {
        const Use use{&storage, range, Access::read_write};
        return reserve({&use, 1}, space, queue);
    }
    [[nodiscard]] Result<void> reserve(Storage& storage, SpaceId space, const driver::Queue* queue = nullptr) {
        return reserve(storage, {0, storage.size().value}, space, queue);
    }
    [[nodiscard]] virtual bool is_reserved(const Storage& storage, ByteRange range, SpaceId space) const = 0;
    // The same for the memory that maps show to the application, whose address does not change while the pin exists.
    [[nodiscard]] virtual Result<MapPin> reserve_map(Storage& storage, ByteRange range) = 0;
    [[nodiscard]] Result<MapPin> reserve_map(Storage& storage) {
        return reserve_map(storage, {0, storage.size().value});
    }
    // The same for a migration of `ranges` to `target`. For host memory, only storages without application memory need any, because the
    // application's memory always exists.
    [[nodiscard]] virtual Result<void> reserve_migration(std::span<const Use> ranges, SpaceId target,
                                                         const driver::Queue* queue) = 0;
    // The sum of the sizes of all storages of the domain, whether they have memory or not.
    [[nodiscard]] virtual ByteCount promised() const = 0;
    // See Announcement.
    [[nodiscard]] virtual uint64_t announce(std::span<const Use> uses, SpaceId space) = 0;
    virtual void withdraw(std::span<const Use> uses, uint64_t number) noexcept = 0;
    // Gives the whole `storage` memory in `space` that keeps its address until the storage is destroyed, and is never
    // evicted. For memory whose address the application knows. Pinned host memory can be used by the host at once.
    // Contents::present: no command has used the storage yet, and the bytes there count as the newest ones, because the host may
    // write them directly.
    enum class Contents : uint8_t { unwritten, present };
    [[nodiscard]] virtual Result<DeviceAddress> pin(Storage& storage, SpaceId space, Contents contents) = 0;

    // --- at submission ---
    // A kernel (or native kernel, in space 0) that uses `uses`. Calls `submit` once, unless a step before fails. When
    // `submit` throws, the kernel was not submitted.
    [[nodiscard]] virtual Result<driver::Timepoint> launch(const Execution& execution, std::span<const Use> uses,
                                                           SubmitLaunch submit) = 0;
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
    // Each row holds a whole number of patterns.
    [[nodiscard]] virtual Result<driver::Timepoint>
    fill_rect(const Execution& execution, Storage& to, const StorageRect& rect, std::span<const std::byte> pattern) = 0;
    [[nodiscard]] Result<driver::Timepoint> fill(const Execution& execution, Storage& to, ByteRange range,
                                                 std::span<const std::byte> pattern) {
        return fill_rect(execution, to, StorageRect::of(range), pattern);
    }
    // Transfers the newest bytes to `target` (CL_MIGRATE_MEM_OBJECT_HOST: host_space). When
    // `content` is undefined, makes `target` their only holder without moving any bytes.
    enum class Content : uint8_t { kept, undefined };
    [[nodiscard]] virtual Result<driver::Timepoint> migrate(const Execution& execution, std::span<const Use> ranges,
                                                            SpaceId target, Content content) = 0;
    // After completion the bytes are valid at storage.map_address() + range.begin.
    [[nodiscard]] virtual Result<driver::Timepoint> map(const Execution& execution, Storage& storage,
                                                        const StorageRect& rect, MapAccess access) = 0;
    // With a writing access, the mapped bytes become the newest version, which only the mapped memory holds.
    [[nodiscard]] virtual Result<driver::Timepoint> unmap(const Execution& execution, Storage& storage,
                                                          const StorageRect& rect, MapAccess access) = 0;

    [[nodiscard]] virtual Ledger& ledger() = 0;
};

}  // namespace polder::memory
