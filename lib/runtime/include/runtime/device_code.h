// DeviceCode: the code of a program for one device: machine code, and the program-scope variables in
// the device's memory. Kernels have references to it, and queues while launches are in flight.
// Any thread may call any function.
#pragma once

#include <base/made_once.h>
#include <base/mutex.h>
#include <compiler/compiler.h>
#include <memory/space.h>
#include <runtime/device.h>
#include <runtime/local_size.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace polder::runtime {

struct LaunchSizes {
    const Size3& global;
    const Size3& offset;
    const Size3& local;
};

// One version of a kernel as machine code on one device. Valid as long as its DeviceCode.
struct LoadedCode {
    std::unique_ptr<driver::LoadedKernel> loaded;
    // The offsets of addresses within the packed arguments.
    std::vector<uint32_t> pointer_offsets;
    compiler::CodeVersion version;  // the launches that it was made for
    mutable uint32_t trace_text = 0;  // id of the kernel's name in a trace; 0: not recorded. Atomic.
    std::span<const driver::LoadedKernel* const> blocks;  // the blocks that it may enqueue: all of the program
    compiler::LaneDimensions dimensions;
    uint64_t row_multiple = 1;  // above 1: only for usual launches; their rows in `dimensions.used` are multiples of it

    [[nodiscard]] const driver::KernelLimits& limits() const { return loaded->limits(); }
    [[nodiscard]] bool is_special() const { return !version.is_general(); }
    // Whether the code is right for a launch with these sizes, apart from what `version` says about groups and arguments.
    [[nodiscard]] bool suits(const LaunchSizes& sizes) const {
        return row_multiple == 1 || is_usual(sizes, dimensions.used, row_multiple);
    }
    // What `suits` asks of offsets; those of further dimensions are 0.
    [[nodiscard]] bool suits_offsets(std::span<const size_t> offsets) const {
        return row_multiple == 1 || are_usual_offsets(offsets, dimensions.used);
    }
    [[nodiscard]] static bool are_usual_offsets(std::span<const size_t> offsets, unsigned dimension) {
        return std::ranges::all_of(offsets, [](size_t offset) { return offset <= compiler::usual_size_max; }) &&
               (dimension >= offsets.size() || offsets[dimension] % compiler::usual_row_multiple(true) == 0);
    }
    // compiler::Launches::usual.
    [[nodiscard]] static bool is_usual(const LaunchSizes& sizes, unsigned dimension, uint64_t row_multiple) {
        const uint64_t row = sizes.local[dimension];
        return std::ranges::all_of(sizes.global, [](uint64_t size) { return size <= compiler::usual_size_max; }) &&
               are_usual_offsets(sizes.offset, dimension) && row < compiler::usual_row_end &&
               (row | sizes.global[dimension]) % row_multiple == 0;
    }
    [[nodiscard]] bool is_quick() const { return version.effort == compiler::Effort::quick; }
    // Whether no better code will be made for launches that `wanted` suits.
    [[nodiscard]] bool is_final_for(const compiler::CodeVersion& wanted) const {
        return is_special() && version.known == wanted.known && (version.groups || !wanted.groups);
    }
    // The most work-items of a work-group on a device that allows `device_max`.
    [[nodiscard]] uint64_t group_size_max(uint64_t device_max) const {
        return limits().max_work_group_size ? std::min(limits().max_work_group_size, device_max) : device_max;
    }
};

class DeviceCode final : public RefCounted {
public:
    // `executable` is shared by the devices whose target is the same.
    DeviceCode(Device& device, std::shared_ptr<compiler::Executable> executable,
               std::shared_ptr<const compiler::Module> module);
    ~DeviceCode() override;

    [[nodiscard]] const compiler::Module& module() const { return *module_; }
    // Null when there is no kernel of this name.
    [[nodiscard]] const compiler::KernelInfo* info(std::string_view kernel) const;

    // `general`: the code for any groups; may be null.
    [[nodiscard]] compiler::Specialising specialising(const compiler::KernelInfo& kernel,
                                                      const compiler::WorkGroups& groups,
                                                      const LoadedCode* general) const {
        using enum compiler::Specialising;
        // Sub-groups follow the linear local id. With several dimensions it takes divisions, unless the size is known.
        if (kernel.uses_sub_groups)
            return device_.info().code.format == driver::CodeFormat::host_function ? at_once : never;
        return executable_->specialising(groups, general ? general->dimensions : compiler::LaneDimensions{});
    }
    [[nodiscard]] bool is_worth_specialising(const compiler::KernelInfo& kernel, const compiler::WorkGroups& groups,
                                             const LoadedCode* general) const {
        return specialising(kernel, groups, general) != compiler::Specialising::never;
    }
    // Whether code for known images (compiler::CodeVersion) is worth compiling.
    [[nodiscard]] bool specialises_for_images(const compiler::KernelInfo& kernel) const {
        return executable_->specialises_for_images() &&
               std::ranges::any_of(kernel.arguments, [](const compiler::KernelArgument& argument) {
                   return argument.kind == compiler::ArgumentKind::image;
               });
    }
    // Code for any launch. The first call compiles and loads it; later calls find it.
    [[nodiscard]] Result<const LoadedCode*> kernel(const compiler::KernelInfo& info);
    // Code for usual launches, or for any. `sizes`: of the launch that needs it; null: only properties of the code are needed. The code may still not suit
    // the launch (LoadedCode::suits), which then needs code for any launch.
    [[nodiscard]] Result<const LoadedCode*> usual_kernel(const compiler::KernelInfo& info, const LaunchSizes* sizes);
    // Code for a launch that is the first of its kernel object: that of usual_kernel; but code for `groups` where code for usual launches has been made
    // ahead, does not suit, and shows that code for any launch would be slow for these groups.
    [[nodiscard]] Result<const LoadedCode*> first_kernel(const compiler::KernelInfo& info,
                                                         const compiler::WorkGroups& groups, const LaunchSizes& sizes);
    // Code for a launch that `version` suits. The version itself is compiled at once if the kernel has no code
    // (compiling code for any launch would take as long) and would be slow without it; otherwise after enough work-items were launched.
    // Until then, the launch gets code for its images and any work-groups, or code for any launch.
    // When `sizes` is null, any code is returned: the caller only needs its properties.
    [[nodiscard]] Result<const LoadedCode*> kernel(const compiler::KernelInfo& info,
                                                   const compiler::CodeVersion& version, const LaunchSizes* sizes);
    // Code of Effort::quick for a launch that executes `work` instructions at most, while the launches of the kernel have had little work in sum and
    // there is no other code; else null. The first launch also gets none when other code has been begun. `counted`: the launch follows, so its work is added to the sum.
    // `is_to_be_replaced`: other code should be made ahead now, because the kernel has been launched several times.
    enum class Count : uint8_t { counted, asked };
    struct QuickCode {
        const LoadedCode* code = nullptr;
        bool is_to_be_replaced = false;
    };
    [[nodiscard]] Result<QuickCode> quick_kernel(const compiler::KernelInfo& info, uint64_t work, Count count);
    // Whether code of `kernel` should be made before its first launch: the code can be foreseen, and no thread has begun to make it.
    [[nodiscard]] bool begins_early(const compiler::KernelInfo& kernel) const;
    // Makes that code, unless another thread has begun it. Does not report failures; the launch will.
    void make_early(const compiler::KernelInfo& kernel);
    [[nodiscard]] bool shares_code_with(const DeviceCode& other) const { return executable_ == other.executable_; }
    // The address of the program-scope variables; 0 when the program has none. The first call writes their initial
    // contents, and waits for the write.
    [[nodiscard]] Result<DeviceAddress> program_variables();

private:
    using Groups = std::optional<compiler::WorkGroups>;
    struct Special {
        compiler::CodeVersion version;
        const LoadedCode* code;
    };
    // A version that does not exist, with the number of work-items of the launches that it would suit, plus an amount for each launch.
    struct Missing {
        compiler::CodeVersion version;
        uint64_t items = 0;
        uint64_t for_launches = 0;
        [[nodiscard]] uint64_t sum() const { return items + for_launches; }
    };
    // The code of one kernel that launches and queries have requested.
    struct Entry {
        const compiler::KernelInfo* info;
        const LoadedCode* code = nullptr;  // the code for any launch
        const LoadedCode* usual = nullptr;  // the code for usual launches
        std::vector<Special> specials;
        std::vector<Missing> missing;
        uint64_t quick_work = 0;  // the instructions that launches of quick code have executed, at most
        uint32_t quick_launches = 0;
        [[nodiscard]] const LoadedCode* find(const compiler::CodeVersion& version) const;
        // The code for images and any groups that suits a launch with these sizes; any such code when `sizes` is null.
        [[nodiscard]] const LoadedCode* find_for_images(const compiler::CodeVersion& any_groups,
                                                        const LaunchSizes* sizes) const;
        [[nodiscard]] uint64_t versions_with(std::span<const compiler::KnownArgument> known) const;
        // Counts a launch for which the version does not exist. Returns whether the version is worth compiling now.
        bool count(const compiler::CodeVersion& version, uint64_t items);
    };
    // The choice for a launch: existing code, or a version to be made.
    struct Choice {
        const LoadedCode* code = nullptr;
        compiler::CodeVersion version;
    };
    [[nodiscard]] Entry& entry(const compiler::KernelInfo& info) POLDER_REQUIRES(mutex_);
    // Chooses the code for a launch, and counts the launch.
    [[nodiscard]] Choice choose(Entry& entry, const compiler::CodeVersion& version, const LaunchSizes* sizes)
        POLDER_REQUIRES(mutex_);
    // For which launches a launch of the kernel gets code: for usual ones rather than for any, but not when both would be made.
    [[nodiscard]] compiler::Launches wanted_launches(const Entry& entry, const LaunchSizes* sizes) const
        POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool wants_special(Entry& entry, const compiler::CodeVersion& version, uint64_t items)
        POLDER_REQUIRES(mutex_);
    // `version`, for usual launches alone if it is for images and any groups, the launch is likely usual, and there is no such code, which would not suit it.
    // Without `sizes`, `version` says which launches are wanted.
    [[nodiscard]] compiler::CodeVersion with_usual_launches(const Entry& entry, const compiler::CodeVersion& version,
                                                            const LaunchSizes* sizes) const POLDER_REQUIRES(mutex_);
    // Whether code for these images and any groups is made rather than code for any launch.
    [[nodiscard]] static bool wants_images(const Entry& entry, const compiler::CodeVersion& version);
    // Whether there is quick code, and not enough launches of it for other code to be made ahead.
    [[nodiscard]] bool quick_code_suffices(const compiler::KernelInfo& info) const POLDER_EXCLUDES(mutex_);
    // How many launches have had quick code, with this one if it is counted; nothing when quick code does not suit it.
    [[nodiscard]] std::optional<uint32_t> quick_launches(const compiler::KernelInfo& info, uint64_t work, Count count)
        POLDER_EXCLUDES(mutex_);
    // The groups of the first launch, as far as they can be foreseen, and its code.
    [[nodiscard]] Groups likely_groups(const compiler::KernelInfo& info) const;
    [[nodiscard]] compiler::CodeVersion likely_version(const compiler::KernelInfo& info) const;
    // Whether the kernel can have code for usual launches: where its code does not depend on groups anyway. Without images, such code is foreseen.
    [[nodiscard]] bool may_be_usual(const compiler::KernelInfo& info) const;
    [[nodiscard]] bool has_usual_code(const compiler::KernelInfo& info) const;
    // The launches to which one with these sizes belongs, whose kernel has no code yet.
    [[nodiscard]] static compiler::Launches likely_launches(const LaunchSizes& sizes);
    [[nodiscard]] static compiler::CodeVersion usual_version(std::vector<compiler::KnownArgument> known = {});
    [[nodiscard]] static compiler::CodeVersion version_for(compiler::Launches launches);
    // Whether code for usual launches has been begun, for whichever of them.
    [[nodiscard]] bool has_begun_usual(const compiler::KernelInfo& info) const;
    [[nodiscard]] Result<const LoadedCode*> make_usual(const compiler::KernelInfo& info, compiler::Launches launches);
    [[nodiscard]] Result<const LoadedCode*> special_kernel(const compiler::KernelInfo& info,
                                                           compiler::CodeVersion version);
    // Compiles and loads at first request, without a lock.
    [[nodiscard]] Result<const LoadedCode*> made(const compiler::KernelInfo& info,
                                                 const compiler::CodeVersion& version);
    [[nodiscard]] Result<LoadedCode> load(const compiler::KernelInfo& info, const compiler::CodeVersion& version);
    // Code for every block of the program.
    [[nodiscard]] Result<std::span<const driver::LoadedKernel* const>> load_blocks() POLDER_EXCLUDES(blocks_mutex_);
    [[nodiscard]] Result<void> fill_variables(const memory::Block& block);

    Device& root_;  // never destroyed
    driver::Device& device_;
    memory::Space& space_;  // the space of the root device
    std::shared_ptr<compiler::Executable> executable_;
    std::shared_ptr<const compiler::Module> module_;
    Mutex blocks_mutex_;
    std::vector<std::unique_ptr<driver::LoadedKernel>> blocks_ POLDER_GUARDED_BY(blocks_mutex_);
    std::vector<const driver::LoadedKernel*> block_list_ POLDER_GUARDED_BY(blocks_mutex_);
    MadeOnce<std::pair<const compiler::KernelInfo*, compiler::CodeVersion>, LoadedCode> versions_;
    std::atomic<uint32_t> early_versions_{0};
    mutable Mutex mutex_;
    std::vector<Entry> entries_ POLDER_GUARDED_BY(mutex_);
    std::optional<memory::Block> variables_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::runtime
