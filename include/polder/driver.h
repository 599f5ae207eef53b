// The driver interface, which a kind of device implements to be used by Polder.
//
// Three classes, eighteen pure virtual functions: a Driver opens Devices; a Device describes itself,
// reserves memory regions and creates Queues; a Queue executes operations in order on a timeline.
// Optional abilities are objects behind pointers that are null by default (PeerCopy, Fence, ...).
//
// Contract
// - Drivers get valid input: ranges are inside memory that they reserved, sizes are not zero. They
//   report only errors that the caller cannot foresee (no memory, device lost); anything else is an assertion.
// - A driver never calls the runtime. It reports progress and failures through timelines.
// - An operation is *submitted* by the call and *executed* later, in order within its queue, after its `waits`. Waits are for
//   earlier submissions only, so executing in the order of submission cannot deadlock. When one of the waits has failed (on any queue,
//   also the same one, and also before the call), the operation is not executed: it fails with
//   exec_status_error_for_events_in_wait_list.
// - Queues, devices and drivers live until the process ends or `Driver` is destroyed; a Timepoint's queue
//   is therefore always a valid pointer. The runtime recycles queues instead of destroying them.
//
// Threads: Driver and Device functions may be called from any thread at once. Submissions to one Queue
// are serialised by its owner; `completed`, `started`, `flush` and `wait` may be called by any thread at
// any time.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <polder/code.h>
#include <polder/image_limits.h>
#include <polder/result.h>
#include <polder/types.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polder::driver {

class ProgramBinaries;
class Queue;

// A point on a queue's monotonic timeline; complete when the queue's counter reaches `value`.
// A default Timepoint is complete from the beginning.
struct Timepoint {
    Queue* queue = nullptr;
    uint64_t value = 0;

    [[nodiscard]] bool is_complete() const;
    friend bool operator==(Timepoint, Timepoint) = default;
};
using Waits = std::span<const Timepoint>;

// When one operation started and ended, in nanoseconds of the clock that Device::now_ns reads. The driver
// writes the times before the operation's completion becomes visible. Operations of one queue that are parts of one
// command may share the object: it then has the start of the first operation and the end of the last one.
struct OperationTimes {
    std::atomic<uint64_t> start_ns{0};
    std::atomic<uint64_t> end_ns{0};

    void start(uint64_t now_ns) {
        if (start_ns.load(std::memory_order_relaxed) == 0)
            start_ns.store(now_ns, std::memory_order_relaxed);
    }
    void end(uint64_t now_ns) { end_ns.store(now_ns, std::memory_order_relaxed); }
};

// The arguments that all operations have.
struct Submission {
    Waits waits;
    OperationTimes* times = nullptr;  // null: the caller wants no times. Valid until the operation is complete.
};

// Contiguous bytes in this device's memory.
struct Memory {
    DeviceAddress address;
    uint64_t size = 0;
};

// Rows of bytes: `rows * slices` runs of `row_bytes`, at `base + y * row_pitch + z * slice_pitch`.
struct RectShape {
    uint64_t row_bytes = 0;
    uint64_t rows = 1;
    uint64_t slices = 1;
};
struct RectLayout {
    uint64_t row_pitch = 0;
    uint64_t slice_pitch = 0;
};

// A copy between this device's memory and host memory, or within one of them, as `from` and `to` say. The ranges do not overlap.
// For PeerCopy, `from` is in the other device's memory.
struct CopyOperation {
    enum class Place : uint8_t { host, device };
    struct End {
        Place place = Place::host;
        DeviceAddress address;  // first byte
        RectLayout layout;  // unused when rows == slices == 1
    };
    End from;
    End to;
    RectShape shape;
};

struct FillOperation {
    static constexpr uint32_t max_pattern_bytes = 128;
    DeviceAddress address;  // this device's memory
    uint64_t size = 0;  // in bytes, a multiple of the pattern's size
    std::span<const std::byte> pattern;  // 1, 2, 4, ... 128 bytes; copied by the call
};

// Other forms of one kernel's code for the host, which compute the same and may be faster. A driver may have them made and measure them. They are
// numbered in the order in which they should be measured. Any thread.
class OtherForms {
public:
    virtual ~OtherForms() = default;
    [[nodiscard]] virtual size_t count() const = 0;
    [[nodiscard]] virtual const char* name(size_t form) const = 0;  // for messages
    // About how long making one takes, in nanoseconds. Launches that have not worked for as long in sum should not have one made. 0: they were made before.
    [[nodiscard]] virtual uint64_t making_ns() const = 0;
    // Makes the code on another thread, and returns at once. Does nothing when that was requested before.
    virtual void request(size_t form) noexcept = 0;
    // Nothing before it was made. Null when there is none: it cannot be made, it would be the same code, or a measurement showed that it is slower.
    [[nodiscard]] virtual std::optional<const HostCode*> made(size_t form) const = 0;
    enum class Verdict : uint8_t { faster, not_faster };
    // A form, or for count() the code to which these forms were offered, takes this part of the time of the code that was the best one until then. If it is
    // faster, it is the best one now. May write a file.
    virtual void measured(size_t form, float time, Verdict verdict) = 0;
};

// Loaded machine code of one kernel on one device. The caller destroys it only after all its launches are complete. Any thread.
class LoadedKernel {
public:
    explicit LoadedKernel(const KernelLimits& limits) : limits_(limits) {}
    virtual ~LoadedKernel() = default;
    [[nodiscard]] const KernelLimits& limits() const { return limits_; }
    // Called before the first launch, if there are other forms.
    virtual void offer(std::unique_ptr<OtherForms>) {}

private:
    const KernelLimits limits_;
};

// For a kernel that enqueues blocks on the device (OpenCL C 6.15.17). Only drivers whose kernels are host functions use it.
struct LaunchBlocks {
    std::span<const LoadedKernel* const> kernels;  // those of all blocks of the program; valid as long as the kernel
    uint64_t default_queue = 0;  // a queue's number (device_enqueue_abi.h); 0: none
    // The device's limits for a work-group. 0: the kernel enqueues no blocks.
    uint64_t group_size_max = 0;
    uint64_t local_memory_bytes = 0;
    uint64_t sub_group_size = 1;
};

struct LaunchOperation {
    const LoadedKernel* kernel = nullptr;
    uint32_t work_dim = 1;
    uint64_t global_offset[3] = {0, 0, 0};
    uint64_t global_size[3] = {1, 1, 1};
    uint64_t local_size[3] = {1, 1, 1};
    // Packed arguments; copied by the call. Pointers in them are DeviceAddress values.
    std::span<const std::byte> arguments;
    // Offsets within `arguments` of the 8-byte device addresses, for drivers whose kernels use
    // other addresses than the runtime. Valid as long as `kernel`.
    std::span<const uint32_t> pointer_offsets;
    uint64_t local_argument_bytes = 0;  // __local arguments, behind the kernel's own local memory
    DeviceAddress program_variables;  // 0 when there are none
    LaunchBlocks blocks;
};

// Calls `function(data)` on a host thread. The runtime uses it for native kernels; `function` may
// block. `data` is kept alive by the caller until completion.
struct HostOperation {
    void (*function)(void* data) = nullptr;
    void* data = nullptr;
};

// An object that Fence::notify calls when a timeline reaches `value`. Its owner keeps it until `reached` was called.
struct FenceWaiter {
    uint64_t value = 0;
    // The driver calls it once. The function must not wait; it may submit operations to queues.
    void (*reached)(FenceWaiter& waiter) = nullptr;
    FenceWaiter* next = nullptr;  // the fence links its waiters by it, until the call
};

// Optional ability of a queue: its timeline calls functions, so that a queue of another driver can continue without a thread that waits
// in between. (The dma_fence objects that Linux's graphics drivers share work like this.)
class Fence {
public:
    virtual ~Fence() = default;
    // Flushes the queue. True: the thread that completes the operation of waiter.value calls `waiter.reached`, perhaps before this
    // function returns, also when operations fail. False: no call will be made, because the timeline has reached the value already or the
    // queue cannot guarantee the call; the caller then waits as for a queue without a fence.
    [[nodiscard]] virtual bool notify(FenceWaiter& waiter) = 0;
};

class Queue {
public:
    virtual ~Queue() = default;

    // Submissions. Each returns the timepoint at which it is complete; values grow by one.
    [[nodiscard]] virtual Timepoint copy(const CopyOperation& operation, const Submission& submission) = 0;
    [[nodiscard]] virtual Timepoint fill(const FillOperation& operation, const Submission& submission) = 0;
    [[nodiscard]] virtual Timepoint launch(const LaunchOperation& operation, const Submission& submission) = 0;
    [[nodiscard]] virtual Timepoint call(const HostOperation& operation, const Submission& submission) = 0;
    // An operation that does nothing. It completes when its waits and all earlier operations of the queue are complete.
    [[nodiscard]] virtual Timepoint marker(const Submission& submission) = 0;

    // After this call, all submitted operations are executed without further calls. A driver may delay
    // operations until then. `wait` implies it.
    virtual void flush() = 0;
    // Returns when the timeline has reached `value`. A driver that executes on the host may execute
    // operations on the calling thread meanwhile.
    virtual void wait(uint64_t value) = 0;

    // The timeline's counter. A driver stores it with release order, so that a thread that has read a value also sees
    // everything that the operations up to it have written.
    [[nodiscard]] uint64_t completed() const { return counter_->load(std::memory_order_acquire); }
    // The newest operation that is known to have begun to execute; at least `completed()`.
    [[nodiscard]] uint64_t started() const { return std::max(started_.load(std::memory_order_acquire), completed()); }
    // Status::success, or the reason why the operation that completed with `value` failed (device lost, ...).
    [[nodiscard]] virtual Status status(uint64_t value) const {
        static_cast<void>(value);
        return Status::success;
    }

    [[nodiscard]] virtual Fence* fence() { return nullptr; }

    // The counter that `completed` reads. A queue that wraps this queue publishes the same counter.
    [[nodiscard]] const std::atomic<uint64_t>& counter() const { return *counter_; }

protected:
    // For a timeline that a device writes: from now on `completed` reads `counter`, which must live as long as the queue. No other
    // thread may use the queue during the call.
    void publish_at(const std::atomic<uint64_t>& counter) { counter_ = &counter; }

    std::atomic<uint64_t> completed_{0};
    std::atomic<uint64_t> started_{0};

private:
    const std::atomic<uint64_t>* counter_ = &completed_;
};

inline bool Timepoint::is_complete() const { return queue == nullptr || queue->completed() >= value; }

// The connection from another device's memory to this device. When several memories hold the bytes, the memory layer copies from the one
// with the fewest hops, and of those from the one with the most bytes per second.
struct PeerLink {
    uint32_t hops = 1;
    uint64_t bytes_per_second = 0;  // in one direction, nominal; 0: not known

    [[nodiscard]] bool is_nearer_than(const PeerLink& other) const {
        return hops != other.hops ? hops < other.hops : bytes_per_second > other.bytes_per_second;
    }
};

// Optional: copies directly from another device's memory to this one's.
class PeerCopy {
public:
    virtual ~PeerCopy() = default;
    // Nothing when this device cannot read memory of `space`. Always returns the same for one space.
    [[nodiscard]] virtual std::optional<PeerLink> link(SpaceId space) const = 0;
    // Copies on `queue` (one of this device's), from memory of `from_space`. Both ends have the place `device`.
    [[nodiscard]] virtual Timepoint copy(Queue& queue, SpaceId from_space, const CopyOperation& operation,
                                         const Submission& submission) = 0;
    // Copies all of `operations` (at least one; their targets do not overlap), and returns the timepoint at which all are complete. Each
    // may be an operation of its own on the timeline, which fails when an earlier one of them has failed. The call copies the list. When
    // it throws std::bad_alloc, none of these copies is in flight.
    [[nodiscard]] virtual Timepoint copy_all(Queue& queue, SpaceId from_space,
                                             std::span<const CopyOperation> operations, const Submission& submission) {
        Timepoint last = copy(queue, from_space, operations.front(), submission);
        try {
            for (const CopyOperation& operation : operations.subspan(1))
                last = copy(queue, from_space, operation, {Waits{&last, 1}, submission.times});
        } catch (...) {
            queue.wait(last.value);
            throw;
        }
        return last;
    }
};

// Optional: host memory that the device reads and writes directly, so that copies from and to it need no staging. Pinning
// takes about 0.1 ms per MiB, so it is done once for memory that is used often, not for a single copy.
class HostRegions {
public:
    virtual ~HostRegions() = default;
    // `region` begins and ends at page boundaries and overlaps no region that was added. Fails when the system refuses to pin it.
    [[nodiscard]] virtual Result<void> add(std::span<std::byte> region) = 0;
    // `region` was added, and no operation uses it any more.
    virtual void remove(std::span<std::byte> region) = 0;
    // Whether kernels, fills and copies may use a region in place, at the host's addresses. If so, operations that wait for an operation
    // see what it wrote, and the host sees it when the operation is complete.
    [[nodiscard]] virtual bool are_for_kernels() const { return false; }
};

// Optional: addresses that get memory part by part, so that the memory layer's regions can grow in place and release unused parts.
class VirtualMemory {
public:
    virtual ~VirtualMemory() = default;
    // All ranges begin and end at multiples of this. It is large enough that commits are rare.
    [[nodiscard]] virtual Alignment page() const = 0;
    // Reserves a contiguous range of addresses without memory. mem_object_allocation_failure when there is none of this size.
    [[nodiscard]] virtual Result<DeviceAddress> reserve_addresses(ByteCount size) = 0;
    // `range` is a whole range that reserve_addresses returned, and no part of it has memory.
    virtual void release_addresses(Memory range) = 0;
    // Gives memory to a range that has none. mem_object_allocation_failure when there is too little; then nothing has changed.
    [[nodiscard]] virtual Result<void> commit(Memory range) = 0;
    // Releases the memory of a range, whose contents are lost. The range may be a part of a committed range, or consist of several
    // neighbouring ones. No operation uses it any more.
    virtual void decommit(Memory range) = 0;
    // Commits take milliseconds, so that the memory layer makes them ahead of need, on a thread of its own.
    [[nodiscard]] virtual bool is_slow() const { return false; }
};

// Optional: for a device whose kernels use host memory in place, at the host's addresses, but not coherently. A range belongs either to
// the host or to the device, at first to the host. A change of the owner copies no bytes.
class UnifiedMemory {
public:
    virtual ~UnifiedMemory() = default;
    // When the operation is complete, the range belongs to the host (map) or to the device (unmap).
    [[nodiscard]] virtual Timepoint map(Queue& queue, Memory range, const Submission& submission) = 0;
    [[nodiscard]] virtual Timepoint unmap(Queue& queue, Memory range, const Submission& submission) = 0;
};

// Optional: for devices whose kernels use other addresses than the runtime. The driver translates the arguments of a launch by itself;
// the runtime calls this object for pointers that it stores in memory.
class KernelAddresses {
public:
    virtual ~KernelAddresses() = default;
    // The address that kernels use for `address`, which is in this device's memory.
    [[nodiscard]] virtual DeviceAddress kernel_address(DeviceAddress address) const = 0;
};

enum class DeviceType : uint8_t { cpu, gpu, accelerator };
// The purpose of a queue; a driver may choose an engine or a priority by it.
enum class QueueRole : uint8_t { compute, transfer_in, transfer_out };

struct CacheInfo {
    uint64_t line_bytes = 0;
    uint64_t size_bytes = 0;
};

// An affinity domain the device can be split by: lists of compute-unit indices.
struct AffinityDomain {
    enum class Level : uint8_t { numa, l4, l3, l2, l1 } level = Level::numa;
    std::vector<std::vector<uint32_t>> groups;
};

// The features and limits of OpenCL C on a device whose driver compiles the kernels itself. The numbers are those that clGetDeviceInfo
// returns.
struct LanguageLimits {
    std::vector<std::string> extensions;  // the extensions of OpenCL C: cl_khr_fp64, ...
    std::vector<std::string> features;  // __opencl_c_...
    std::vector<uint32_t> versions;  // of OpenCL C
    std::vector<uint32_t> spirv_versions;
    enum class WorkGroups : uint8_t { uniform, any } work_groups = WorkGroups::uniform;
    uint64_t single_fp_config = 0;
    uint64_t double_fp_config = 0;
    uint64_t atomic_memory_capabilities = 0;
    uint64_t atomic_fence_capabilities = 0;
    uint64_t constant_bytes_max = 0;
    uint32_t constant_arguments_max = 0;
    uint64_t parameter_bytes_max = 0;
    uint64_t program_variables_bytes_max = 0;
    uint64_t printf_bytes_max = 0;
    std::optional<ImageLimits> images;  // none: kernels have no images
};

struct DeviceInfo {
    std::string name;
    std::string vendor;
    uint32_t vendor_id = 0;
    std::string driver_version;
    DeviceType type = DeviceType::cpu;
    // The memory that the device computes in. Drivers of devices with their own memory set it in open().
    SpaceId space;
    uint32_t compute_units = 1;
    uint32_t max_sub_devices = 0;  // 0: cannot be partitioned
    uint32_t clock_mhz = 0;
    uint64_t max_work_group_size = 4096;
    uint64_t max_work_item_sizes[3] = {4096, 4096, 4096};
    uint64_t memory_bytes = 0;  // the size of the device's memory
    uint64_t allocation_bytes_max = 0;  // the largest size for reserve_memory; 0: memory_bytes
    // The size of the first region that the memory layer reserves; later regions double. 0: one region of all the memory.
    uint64_t region_bytes = 0;
    CacheInfo global_cache;
    bool local_memory_is_dedicated = false;
    // CL_DEVICE_LOCAL_MEM_SIZE, where programs should plan with less than a work-group can have (decision 213). 0: code.local_memory_bytes.
    uint64_t planned_local_memory_bytes = 0;
    uint32_t preferred_vector_bytes = 16;
    uint64_t base_address_alignment = 128;
    uint64_t timer_resolution_ns = 1;
    CodeTarget code;  // the code that load() takes
    // Set exactly when the format of `code` is opencl_c. Other devices support what Polder's compiler supports.
    std::optional<LanguageLimits> language;
    // SVM is offered when the device computes in host memory (space 0).
    bool native_kernels = true;
};

class Device {
public:
    virtual ~Device() = default;

    [[nodiscard]] virtual const DeviceInfo& info() const = 0;

    // Reserves contiguous device memory of at least `size` bytes, in which the memory layer allocates buffers. A driver
    // whose device has handles instead of addresses invents a range of numbers for each region; when it gets an address, it
    // computes the handle of the region and an offset.
    // Not called for devices in space 0: the memory layer manages host memory itself.
    // mem_object_allocation_failure when the device has too little memory left.
    [[nodiscard]] virtual Result<Memory> reserve_memory(ByteCount size) = 0;
    virtual void release_memory(Memory memory) = 0;
    // Bytes that reserve_memory could still reserve.
    [[nodiscard]] virtual ByteCount available_memory() const = 0;

    [[nodiscard]] virtual Result<std::unique_ptr<Queue>> create_queue(QueueRole role) = 0;
    // `code` is of the format that info().code names. out_of_resources with a reason as detail when the device cannot
    // execute it (it needs too much stack, or a vendor's compiler fails).
    [[nodiscard]] virtual Result<std::unique_ptr<LoadedKernel>> load(const KernelCode& code) = 0;

    // A device that uses only `compute_units` of this device, and has the same memory. Only called when
    // info().max_sub_devices > 1. The indices are distinct and below info().compute_units.
    [[nodiscard]] virtual Result<std::unique_ptr<Device>>
    create_sub_device(std::span<const uint32_t> compute_units) = 0;

    // How create_sub_device may divide the device along its topology. Called only when an application needs it, because the
    // first call may be slow. Valid as long as the device.
    [[nodiscard]] virtual std::span<const AffinityDomain> affinity_domains() { return {}; }

    // The time now, in nanoseconds of the clock of OperationTimes: CLOCK_MONOTONIC_RAW in all of Polder's drivers.
    [[nodiscard]] virtual uint64_t now_ns() const = 0;

    [[nodiscard]] virtual PeerCopy* peer_copy() { return nullptr; }
    [[nodiscard]] virtual HostRegions* host_regions() { return nullptr; }
    [[nodiscard]] virtual const KernelAddresses* kernel_addresses() const { return nullptr; }
    [[nodiscard]] virtual VirtualMemory* virtual_memory() { return nullptr; }
    [[nodiscard]] virtual UnifiedMemory* unified_memory() { return nullptr; }
    [[nodiscard]] virtual ProgramBinaries* program_binaries() { return nullptr; }  // polder/program_binaries.h
};

// One kind of device. Registered by its folder's `make_<name>_driver()` in devices/drivers.h.
class Driver {
public:
    virtual ~Driver() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;  // as in POCL_DEVICES
    // The number of devices that the machine has. They are opened when POCL_DEVICES is not set.
    [[nodiscard]] virtual uint32_t count() const = 0;
    // Opens this driver's device number `index`. `space` is the id for the device's own memory; a device
    // that computes in host memory ignores it. `parameters` is POCL_<NAME><index>_PARAMETERS and may be
    // empty. The driver reports a malformed part as a warning and uses the part's default value.
    [[nodiscard]] virtual Result<std::unique_ptr<Device>> open(uint32_t index, SpaceId space,
                                                               std::string_view parameters) = 0;
};

}  // namespace polder::driver
