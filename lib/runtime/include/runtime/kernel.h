// Kernel: a kernel of a built program with its arguments. Arguments are copy-on-write: a launch that has to wait takes
// a reference to the current set instead of copying it.
//
// A kernel does not keep its argument buffers alive (the specification forbids it); a launch does.
// Several threads must not set arguments of one kernel at the same time; everything else is thread-safe.
#pragma once

#include <runtime/allocation.h>
#include <runtime/last_launch.h>
#include <runtime/local_size.h>
#include <runtime/mem_object.h>
#include <runtime/program.h>

#include <atomic>

namespace polder::runtime {

// The allocations that a kernel may access through pointers in memory, besides its arguments (clSetKernelExecInfo).
struct IndirectUses final : RefCounted {
    std::vector<KnownAddress> svm;      // CL_KERNEL_EXEC_INFO_SVM_PTRS
    std::vector<KnownAddress> unified;  // CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL
    std::vector<KnownAddress> buffers;  // CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT
    uint32_t kinds =
        0;  // all allocations of a kind, as 1 << Allocation::Kind: CL_KERNEL_EXEC_INFO_INDIRECT_*_ACCESS_INTEL

    IndirectUses() = default;
    IndirectUses(const IndirectUses& other)
        : RefCounted(), svm(other.svm), unified(other.unified), buffers(other.buffers), kinds(other.kinds) {}
};

// One set of argument values, immutable once shared.
struct KernelArguments final : RefCounted {
    KernelArguments() = default;
    KernelArguments(const KernelArguments& other)
        : RefCounted(), packed(other.packed), pointers(other.pointers), locals(other.locals), is_set(other.is_set),
          unset_count(other.unset_count), indirect(other.indirect) {}

    // An argument that is a pointer to global or constant memory: a buffer, an SVM pointer or null. Or an image, whose
    // descriptor (image_abi.h) the launch puts at `offset`.
    struct Pointer {
        uint32_t index;  // the argument's index
        uint32_t offset;  // within `packed`
        cl_mem buffer = nullptr;
        // The kind of the address, when there is no buffer.
        enum class Origin : uint8_t { null, svm, address } origin = Origin::null;
        KnownAddress address;
    };
    // An argument that is a pointer to local memory, with its size in bytes.
    struct Local {
        uint32_t index;
        uint32_t offset;
        uint64_t bytes = 0;
    };
    std::vector<std::byte> packed;  // in the form of kernel_abi.h; the launch fills in addresses
    std::vector<Pointer> pointers;  // in ascending order of the argument's index, as are `locals`
    std::vector<Local> locals;
    std::vector<bool> is_set;
    uint32_t unset_count = 0;
    Ref<const IndirectUses> indirect;  // null for most kernels: no such uses
};

// Keeps the code of one kernel object alive while it executes. Each kernel object has its own keeper, so that threads which launch
// kernels of one program do not change a common reference count.
struct CodeKeeper final : RefCounted {
    explicit CodeKeeper(Ref<DeviceCode> kept) : code(std::move(kept)) {}
    const Ref<DeviceCode> code;
};

// A kernel on one device that its program was built for.
struct KernelOnDevice {
    KernelOnDevice(Ref<Device> of_device, Ref<DeviceCode> of_code, const compiler::KernelInfo* of_kernel,
                   BuiltModule::WorkGroups groups)
        : device(std::move(of_device)), code(std::move(of_code)), info(of_kernel), work_groups(groups),
          keeper(make_ref<CodeKeeper>(code)) {}
    Ref<Device> device;
    Ref<DeviceCode> code;
    const compiler::KernelInfo* info = nullptr;
    BuiltModule::WorkGroups work_groups = BuiltModule::WorkGroups::uniform;
    Ref<CodeKeeper> keeper;
};

class Kernel final : public Object {
public:
    static constexpr Kind kind = Kind::kernel;
    static constexpr Status invalid = Status::invalid_kernel;

    // invalid_program_executable, invalid_kernel_name, invalid_kernel_definition; out_of_resources for too many
    // bytes of arguments.
    static Result<Ref<Kernel>> create(Ref<Program> program, std::string_view name);
    // A new kernel object with the same arguments.
    [[nodiscard]] Ref<Kernel> clone() const;
    ~Kernel() override;

    [[nodiscard]] Program& program() const { return *program_; }
    [[nodiscard]] Context& context() const { return program_->context(); }
    // Name, arguments and attributes, which are the same for all devices.
    [[nodiscard]] const compiler::KernelInfo& info() const { return *on_devices_.front().info; }

    // Null when there is no executable for the device or for a device of which it is a part.
    [[nodiscard]] const KernelOnDevice* on(const Device& device) const;
    // The work-items of a launch, and whether the launch is recorded: then it may be repeated, so it gets no code for launches with little work.
    struct Launched {
        enum class Times : uint8_t { once, many };
        Size3 global{};
        Times times = Times::once;
        Size3 offset{};
    };
    // Machine code for any launch, or for a launch in groups of `local`. The first call compiles it.
    [[nodiscard]] Result<const LoadedCode*> code(const KernelOnDevice& on) const;
    [[nodiscard]] Result<const LoadedCode*> code(const KernelOnDevice& on, const Launched& launched,
                                                 const Size3& local) const;
    // The work-group size for a launch without a local size.
    [[nodiscard]] Result<Size3> suggest_local_size(const KernelOnDevice& on, const Device& device,
                                                   const Launched& launched) const;
    // The work-group size to use when the application passed `local`. It differs from `local` when the kernel's results do not
    // depend on the size and another size is faster: groups of one work-item, or of a prime size, would not fill whole vectors.
    [[nodiscard]] Result<Size3> best_local_size(const KernelOnDevice& on, const Device& device,
                                                const Launched& launched, const Size3& local) const;

    // Whether all later launches in groups of `local` will execute `code`, as the last one did, because no better code will be made.
    [[nodiscard]] bool is_final(const KernelOnDevice& on, const LoadedCode& code, const Size3& local) const;
    [[nodiscard]] LastLaunch& last_launch() const { return last_launch_; }

    // The caller has checked index, size and value.
    void set_value(uint32_t index, const void* value);
    void set_buffer(uint32_t index, cl_mem buffer);  // `buffer` may be an image
    void set_svm_pointer(uint32_t index, KnownAddress address);
    // Sets an address in unified shared memory or on a device. Any value is valid.
    void set_address(uint32_t index, KnownAddress address);
    void set_indirect(std::vector<KnownAddress> IndirectUses::* list, std::vector<KnownAddress> addresses);
    enum class MayUse : uint8_t { no, yes };
    void set_indirect_kind(Allocation::Kind of, MayUse may_use);
    void set_sampler(uint32_t index, uint64_t bits);
    void set_local(uint32_t index, uint64_t bytes);
    [[nodiscard]] const Ref<KernelArguments>& arguments() const { return arguments_; }

private:
    Kernel(Ref<Program> program, std::vector<KernelOnDevice> on_devices, Ref<KernelArguments> arguments);
    [[nodiscard]] KernelArguments& change();
    [[nodiscard]] KernelArguments& change(uint32_t index);
    [[nodiscard]] KernelArguments::Pointer& change_pointer(uint32_t index, const void* value);
    void set_pointer(uint32_t index, KernelArguments::Pointer::Origin origin, KnownAddress address);
    [[nodiscard]] Ref<IndirectUses> copy_of_indirect() const;

    [[nodiscard]] Size3 choose(LocalSizeRules::Shape shape, const KernelOnDevice& on, const Device& device,
                               const LoadedCode& code, const Size3& global) const;

    // The code of the last launch on a device, so that a repeated launch need not lock data that the program's kernels share.
    struct LastCode {
        compiler::CodeVersion version;
        const LoadedCode* special = nullptr;
    };
    [[nodiscard]] LastCode& last_code(const KernelOnDevice& on) const POLDER_REQUIRES(mutex_);
    // The formats of images and the bits of samplers, when code for them is worth compiling; otherwise empty.
    [[nodiscard]] std::vector<compiler::KnownArgument> known_arguments(const KernelOnDevice& on) const;
    // The code whose properties determine the work-group size: probably that of the next launch.
    [[nodiscard]] Result<const LoadedCode*> code_before_groups(const KernelOnDevice& on,
                                                               const Launched& launched) const;
    // Code for a launch of these sizes, most often in any groups.
    [[nodiscard]] Result<const LoadedCode*> code(const KernelOnDevice& on, const compiler::WorkGroups& groups,
                                                 const LaunchSizes& sizes) const;
    // Code for a launch with little work; null when the launch gets other code.
    [[nodiscard]] Result<const LoadedCode*> quick_code(const KernelOnDevice& on, const Launched& launched,
                                                       DeviceCode::Count count) const;
    // The code for any or for usual launches; null when this kernel object has not requested it.
    [[nodiscard]] std::atomic<const LoadedCode*>& general_code(const KernelOnDevice& on) const;

    struct Choice {
        const Device* device = nullptr;
        Size3 global{};
        Size3 local{};
    };

    Ref<Program> program_;
    const std::vector<KernelOnDevice> on_devices_;
    Ref<KernelArguments> arguments_;
    // One for each of on_devices_: null at first; code for usual launches may become code for any. Every launch reads it without a lock.
    mutable std::vector<std::atomic<const LoadedCode*>> general_codes_;
    mutable LastLaunch last_launch_;
    mutable Mutex mutex_;
    mutable std::vector<LastCode> last_codes_ POLDER_GUARDED_BY(mutex_);  // one for each of on_devices_
    // The last choices of a work-group size, separate for kernels that see work-groups and those that do not.
    mutable Choice last_seen_ POLDER_GUARDED_BY(mutex_);
    mutable Choice last_unseen_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::runtime
