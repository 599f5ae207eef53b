// compiler::Executable for the host: work-group functions, made or taken from the disk cache at first request.
#include "executable.h"

#include "builtins/builtins.h"
#include "code_generator.h"
#include "cold_functions.h"
#include "crash_guard.h"
#include "files/cache.h"
#include "files/paths.h"
#include "loader.h"
#include "lower.h"
#include "machine/host.h"
#include "module/bitcode.h"
#include "module/byte_stream.h"
#include "module/module.h"
#include "module/value_names.h"
#include "module/zeroed_memory.h"
#include "targets/host/workgroup/work_items/sub_group_functions.h"

#include <base/log.h>
#include <base/made_once.h>
#include <base/mutex.h>
#include <base/options.h>
#include <compiler/compiler.h>
#include <compiler/optional_work.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>

namespace polder::compiler {

template <Same<KernelObject> T>
auto fields_of(T& kernel) {
    return std::tie(kernel.object, kernel.entry, kernel.local_bytes, kernel.scratch_bytes_per_work_item,
                    kernel.private_bytes_per_work_item, kernel.vector_width, kernel.lane_dimension,
                    kernel.other_dimension, kernel.row_multiple, kernel.stack_bytes, kernel.lanes,
                    kernel.cold_functions, kernel.other_forms);
}

// What earlier processes have found.
struct Preference {
    Form form = Form::planned;
    uint32_t measured = 0;  // a bit for each Form
    friend bool operator==(const Preference&, const Preference&) = default;
};
template <Same<Preference> T>
auto fields_of(T& preference) {
    return std::tie(preference.form, preference.measured);
}

namespace {

std::string text_of(const std::vector<KnownArgument>& known) {
    std::string text;
    for (const KnownArgument& argument : known)
        for (const uint32_t word : {argument.index, argument.sampler, argument.channel_order, argument.channel_type,
                                    argument.element_bytes, argument.kind})
            text += std::to_string(word) + " ";
    return text;
}

Result<std::string> key_of(const CompiledModule& module, const std::string& kernel, const CodeVersion& version,
                           const ZeroedMemory& zeroed) {
    std::string size = "any";
    if (const std::optional<WorkGroups>& groups = version.groups)
        size = std::to_string(groups->size[0]) + "x" + std::to_string(groups->size[1]) + "x" +
               std::to_string(groups->size[2]) + (groups->ends == WorkGroups::Ends::whole ? " whole" : " ragged");
    POLDER_ASSIGN(builtins, Builtins::for_host());
    const ContentHash& library = builtins->hash();
    return cache_key({"kernel",
                      module.bitcode(),
                      {reinterpret_cast<const char*>(library.data()), library.size()},
                      kernel,
                      size,
                      text_of(version.known),
                      !module.options().is_optimized    ? "plain"
                      : version.effort == Effort::quick ? "quick"
                                                        : "optimized",
                      std::to_string(static_cast<unsigned>(version.form)),
                      version.launches == Launches::usual           ? "usual"
                      : version.launches == Launches::whole_vectors ? "whole vectors"
                                                                    : "any",
                      zeroed.local ? "zeroed local memory" : "",
                      zeroed.private_variables ? "zeroed variables" : "",
                      options::force_lanes() ? "lanes"
                      : options::use_lanes() ? "auto"
                                             : "loops"});
}

void report(const std::string& kernel, const KernelObject& object) {
    POLDER_LOG(compiler, "kernel %s: %s; %zu bytes of object code", kernel.c_str(), object.lanes.c_str(),
               object.object.size());
}

// Makes the host form of a module that this process did not link, or whose kernels must find memory zeroed.
Result<std::string> make_host_bitcode(const CompiledModule& module, const ZeroedMemory& zeroed) {
    llvm::LLVMContext context;
    set_value_names(context);
    POLDER_ASSIGN(lowered, read_bitcode(module.bitcode(), context, BitcodeReading::whole));
    zero_memory(*lowered, module.kernels(), zeroed);
    zero_memory(*lowered, module.blocks(), zeroed);
    std::string log;
    if (const Result<void> result = lower_for_host(*lowered, log); !result)
        return fail(result.error().status(), log + std::string{result.error().detail()});
    return write_bitcode(*lowered);
}

class HostExecutable final : public Executable {
public:
    HostExecutable(std::shared_ptr<const Module> module, const Target& target, const ZeroedMemory& zeroed)
        : module_(std::move(module)), local_memory_bytes_(target.code.local_memory_bytes), zeroed_(zeroed) {}

    Result<const driver::KernelCode*> code(std::string_view name, const CodeVersion& version) override {
        const KernelInfo* kernel = find(name);
        if (kernel == nullptr)
            return fail(Status::invalid_kernel_name, "the program has no kernel " + std::string{name});
        POLDER_ASSIGN(entry, entries_.get({std::string{name}, version}, [&] { return make(*kernel, version); }));
        return &entry->code;
    }

    [[nodiscard]] Specialising specialising(const WorkGroups& groups, const LaneDimensions& dimensions) const override {
        // A vector has at most 16 lanes. In code for any groups, a work-group with a shorter row has no lanes, so it needs code of its own. So does
        // a single work-item: in its own code the explicit vectors of its source stay whole. Where a row is exactly one vector, code for this
        // size keeps values that are the same for all rows in registers. Where code for any groups has no lanes, that for this size may have some along
        // another dimension.
        constexpr uint64_t lanes_max = 16;
        const uint64_t row = groups.size[dimensions.used];
        if (row < lanes_max)
            return Specialising::at_once;
        const bool has_rows = groups.size[0] * groups.size[1] * groups.size[2] > row;
        const bool may_have_other_lanes = dimensions.other != 0 && groups.ends == WorkGroups::Ends::whole &&
                                          groups.size[dimensions.other] >= workgroup::rows_for_lanes;
        return (row == lanes_max && has_rows) || may_have_other_lanes ? Specialising::when_hot : Specialising::never;
    }

    [[nodiscard]] bool has_quick_code() const override {
        return options::quick_code() && module().options().is_optimized && options::use_lanes() &&
               !options::force_lanes() && zeroed_ == ZeroedMemory{};
    }

    [[nodiscard]] bool specialises_for_images() const override {
        return module().options().is_optimized && options::use_lanes();
    }

    [[nodiscard]] LaneDimensions lane_dimensions(std::string_view name, const CodeVersion& version) override {
        const Entry* const made = entries_.find({std::string{name}, version});
        return made == nullptr ? LaneDimensions{} : made->dimensions;
    }

    [[nodiscard]] uint64_t row_multiple(std::string_view name, const CodeVersion& version) override {
        const Entry* const made = entries_.find({std::string{name}, version});
        return made == nullptr ? 1 : made->row_multiple;
    }

    [[nodiscard]] std::vector<Form> other_forms(std::string_view name, const CodeVersion& version) override {
        const Entry* const made = entries_.find({std::string{name}, version});
        return made == nullptr ? std::vector<Form>{} : made->other_forms;
    }

    void prefer(std::string_view name, const CodeVersion& version) override {
        change_preference(std::string{name}, version, [&](Preference& kept) {
            kept.form = form_of(name, version);
            kept.measured |= bit_of(kept.form);
        });
    }

    void note_measured(std::string_view name, const CodeVersion& version) override {
        change_preference(std::string{name}, version,
                          [&](Preference& kept) { kept.measured |= bit_of(form_of(name, version)); });
    }

private:
    struct Entry {
        std::vector<std::shared_ptr<const LoadedObject>> cold_functions;
        std::unique_ptr<LoadedObject> object;
        driver::KernelCode code;
        LaneDimensions dimensions;
        uint64_t row_multiple = 1;
        Form form = Form::planned;  // not `best`
        std::vector<Form> other_forms;
        size_t object_hash = 0;
    };

    const KernelInfo* find(std::string_view name) const {
        for (const std::span<const KernelInfo> kernels : {module_->kernels(), module_->blocks()})
            if (const auto found = std::ranges::find(kernels, name, &KernelInfo::name); found != kernels.end())
                return &*found;
        return nullptr;
    }

    [[nodiscard]] const CompiledModule& module() const { return static_cast<const CompiledModule&>(*module_); }

    Result<std::string_view> host_bitcode() POLDER_EXCLUDES(bitcode_mutex_) {
        if (!module().host_bitcode().empty() && zeroed_ == ZeroedMemory{})
            return module().host_bitcode();
        const Lock lock(bitcode_mutex_);
        if (host_bitcode_.empty()) {
            Result<std::string> made = fail(Status::out_of_resources);
            if (const auto crash = run_guarded([&] { made = make_host_bitcode(module(), zeroed_); }))
                return fail(Status::out_of_resources, *crash);
            if (!made)
                return fail(made.error());
            host_bitcode_ = std::move(*made);
        }
        return std::string_view{host_bitcode_};
    }

    Result<KernelObject> make_object(const KernelInfo& kernel, const CodeVersion& version) {
        POLDER_ASSIGN(key, key_of(module(), kernel.name, version, zeroed_));
        if (const auto bytes = load_cached(key))
            if (auto object = from_bytes<KernelObject>(*bytes)) {
                report(kernel.name, *object);
                return std::move(*object);
            }
        POLDER_ASSIGN(bitcode, host_bitcode());
        Result<KernelObject> object = fail(Status::out_of_resources);
        if (const auto crash = run_guarded([&, is_unneeded = OptionalWork::of_this_thread()] {
                const OptionalWork same(is_unneeded);
                object = generate_code({module(), bitcode, kernel, version.groups, version.known, version.effort,
                                        version.form, version.launches});
            }))
            return fail(Status::out_of_resources, *crash);
        if (OptionalWork::is_unneeded()) {
            POLDER_LOG(compiler, "kernel %s: abandoned, because its code is not needed any more", kernel.name.c_str());
            return fail(Status::out_of_resources, "the code is not needed any more");
        }
        if (object) {
            report(kernel.name, *object);
            store_cached(key, to_bytes(*object));
        }
        return object;
    }

    // Whether another form of a kernel turned out to be the best one's code.
    bool is_best_code(const KernelInfo& kernel, CodeVersion version, size_t object_hash) {
        if (version.form == Form::best)
            return false;
        version.form = Form::best;
        const Entry* const best = entries_.find({kernel.name, version});
        return best != nullptr && best->object_hash == object_hash;
    }

    // Where the best form of a version is kept on disk.
    Result<std::string> preference_key(const std::string& kernel, CodeVersion version) {
        version.form = Form::planned;
        version.launches = Launches::any;
        POLDER_ASSIGN(key, key_of(module(), kernel, version, zeroed_));
        return cache_key({"measured forms", key});
    }

    static uint32_t bit_of(Form form) { return uint32_t{1} << static_cast<unsigned>(form); }

    static std::optional<Preference> load_preference(const std::string& key) {
        const std::optional<std::string> bytes = load_cached(key);
        const std::optional<Preference> kept = bytes ? from_bytes<Preference>(*bytes) : std::nullopt;
        return kept && kept->form <= Form::with_lanes ? kept : std::nullopt;
    }

    // Which form the best one was when the version was made.
    Form form_of(std::string_view kernel, const CodeVersion& version) {
        const Entry* const made = version.form == Form::best ? entries_.find({std::string{kernel}, version}) : nullptr;
        return made != nullptr ? made->form : version.form;
    }

    // Two processes may do so at the same time. Then one change is lost, and made again after a later measurement.
    void change_preference(const std::string& kernel, const CodeVersion& version,
                           const std::function<void(Preference&)>& change) POLDER_EXCLUDES(preferences_mutex_) {
        const Result<std::string> key = preference_key(kernel, version);
        if (!key)
            return;
        const Lock lock(preferences_mutex_);
        const Preference before = load_preference(*key).value_or(Preference{});
        Preference kept = before;
        change(kept);
        if (kept != before)
            store_cached(*key, to_bytes(kept));
    }

    Preference preference(const KernelInfo& kernel, const CodeVersion& version) {
        if (version.effort == Effort::quick || !options::other_forms())
            return {};
        const Result<std::string> key = preference_key(kernel.name, version);
        return (key ? load_preference(*key) : std::nullopt).value_or(Preference{});
    }

    // Those forms, and then the others, each in their order.
    static void put_first(std::vector<Form>& forms, const std::function<bool(Form)>& is_first) {
        std::vector<Form> sorted;
        for (const bool first : {true, false})
            std::ranges::copy_if(forms, std::back_inserter(sorted), [&](Form form) { return is_first(form) == first; });
        forms = std::move(sorted);
    }

    struct FormObject {
        KernelObject object;
        Form form = Form::planned;
    };

    // The object of the best form, with the forms that are worth measuring beside it.
    Result<FormObject> make_best_object(const KernelInfo& kernel, CodeVersion version) {
        version.form = Form::planned;
        POLDER_ASSIGN(planned, make_object(kernel, version));
        const Preference kept = preference(kernel, version);
        // Processes that end early measure other forms than those before them.
        put_first(planned.other_forms, [&](Form form) { return (kept.measured & bit_of(form)) == 0; });
        version.form = kept.form;
        const auto found = std::ranges::find(planned.other_forms, version.form);
        if (found == planned.other_forms.end())
            return FormObject{std::move(planned)};
        Result<KernelObject> best = make_object(kernel, version);
        if (!best)
            return FormObject{std::move(planned)};
        // The planned code comes first: what was measured may have been wrong, or another computer's.
        *found = Form::planned;
        put_first(planned.other_forms, [](Form form) { return form == Form::planned; });
        best->other_forms = std::move(planned.other_forms);
        // The sizes of work-groups do not depend on what was measured, except that usual launches have whole rows in the dimension of the code's lanes.
        best->vector_width = planned.vector_width;
        if (best->row_multiple == 1) {
            best->lane_dimension = planned.lane_dimension;
            best->other_dimension = planned.other_dimension;
        }
        return FormObject{std::move(*best), version.form};
    }

    Result<FormObject> make_form_object(const KernelInfo& kernel, const CodeVersion& version) {
        if (version.form == Form::best)
            return make_best_object(kernel, version);
        POLDER_ASSIGN(object, make_object(kernel, version));
        return FormObject{std::move(object), version.form};
    }

    Result<Entry> make(const KernelInfo& kernel, const CodeVersion& version) {
        POLDER_ASSIGN(made, make_form_object(kernel, version));
        KernelObject& object = made.object;
        if (local_memory_bytes_ != 0 && object.local_bytes > local_memory_bytes_)
            return fail(Status::out_of_resources,
                        "kernel " + kernel.name + " needs " + std::to_string(object.local_bytes) +
                            " bytes of local memory; the device has " + std::to_string(local_memory_bytes_));
        const size_t object_hash = std::hash<std::string>{}(object.object);
        if (is_best_code(kernel, version, object_hash))
            return fail(Status::invalid_value, "kernel " + kernel.name + " has the same code in this form");
        Entry entry;
        std::vector<NamedAddress> symbols;
        for (const ColdFunction& function : object.cold_functions) {
            POLDER_ASSIGN(cold, load_cold_function(function));
            symbols.push_back({function.symbol, cold->address()});
            entry.cold_functions.push_back(std::move(cold));
        }
        auto loaded = load_object(object.object, object.entry, symbols);
        if (!loaded)
            return fail(loaded.error());
        entry.code = driver::HostCode{.function = reinterpret_cast<WorkGroupFunction>((*loaded)->address()),
                                      .local_bytes = object.local_bytes,
                                      .scratch_bytes_per_work_item = object.scratch_bytes_per_work_item,
                                      .stack_bytes = object.stack_bytes,
                                      .private_bytes_per_work_item = object.private_bytes_per_work_item,
                                      .preferred_multiple = std::max<uint64_t>(object.vector_width, 1),
                                      .flushes_subnormals = module().options().flushes_subnormals,
                                      .name = kernel.name};
        entry.object = std::move(*loaded);
        entry.object_hash = object_hash;
        entry.form = made.form;
        entry.other_forms = std::move(object.other_forms);
        entry.dimensions = {static_cast<unsigned>(object.lane_dimension),
                            static_cast<unsigned>(object.other_dimension)};
        entry.row_multiple = object.row_multiple;
        return entry;
    }

    const std::shared_ptr<const Module> module_;
    const uint64_t local_memory_bytes_;
    const ZeroedMemory zeroed_;
    Mutex bitcode_mutex_, preferences_mutex_;
    std::string
        host_bitcode_ POLDER_GUARDED_BY(bitcode_mutex_);  // when the module has none; not changed once it is there
    MadeOnce<std::pair<std::string, CodeVersion>, Entry> entries_;
};

}  // namespace

std::span<const uint32_t> sub_group_sizes() {
    static constexpr std::array<uint32_t, 5> sizes{4, 8, 16, 32, 64};
    static_assert(sizes.front() == workgroup::sub_group_size_min && sizes.back() == workgroup::sub_group_size_max);
    return sizes;
}

uint32_t default_sub_group_size() { return host().sub_group_size; }

std::shared_ptr<Executable> make_host_executable(std::shared_ptr<const Module> module, const Target& target,
                                                 const ZeroedMemory& zeroed) {
    return std::make_shared<HostExecutable>(std::move(module), target, zeroed);
}

}  // namespace polder::compiler
