// compiler::Executable: machine code of kernels, made or taken from the disk cache at first request.
#include "builtins/builtins.h"
#include "code_generator.h"
#include "crash_guard.h"
#include "loader.h"
#include "program/byte_stream.h"
#include "program/cache.h"
#include "program/module.h"
#include "program/paths.h"

#include <base/log.h>
#include <base/mutex.h>
#include <base/options.h>
#include <compiler/compiler.h>

#include <algorithm>
#include <map>

namespace polder::compiler {
namespace {

std::string to_bytes(const KernelObject& object) {
    ByteWriter out;
    out.put(std::string_view{object.object});
    out.put(std::string_view{object.entry});
    out.put(object.local_bytes);
    out.put(object.scratch_bytes_per_work_item);
    out.put(object.private_bytes_per_work_item);
    out.put(object.vector_width);
    out.put(object.stack_bytes);
    out.put(std::string_view{object.lanes});
    return out.bytes();
}

std::optional<KernelObject> from_bytes(std::string_view bytes) {
    ByteReader in(bytes);
    KernelObject object;
    object.object = in.get_string();
    object.entry = in.get_string();
    object.local_bytes = in.get<uint64_t>();
    object.scratch_bytes_per_work_item = in.get<uint64_t>();
    object.private_bytes_per_work_item = in.get<uint64_t>();
    object.vector_width = in.get<uint64_t>();
    object.stack_bytes = in.get<uint64_t>();
    object.lanes = in.get_string();
    return in.ok() && in.at_end() ? std::optional{std::move(object)} : std::nullopt;
}

std::string key_of(const KernelRequest& request) {
    std::string size = "any";
    if (request.groups)
        size = std::to_string(request.groups->size[0]) + "x" + std::to_string(request.groups->size[1]) + "x" +
               std::to_string(request.groups->size[2]) +
               (request.groups->ends == WorkGroups::Ends::whole ? " whole" : " ragged");
    return cache_key({"kernel", request.module.bitcode(), request.kernel.name, size,
                      request.module.options().is_optimized ? "optimized" : "plain",
                      options::use_lanes() ? "lanes" : "loops"});
}

void report(const KernelRequest& request, const KernelObject& object) {
    POLDER_LOG(compiler, "kernel %s: %s; %zu bytes of object code", request.kernel.name.c_str(), object.lanes.c_str(),
               object.object.size());
}

Result<KernelObject> make_object(const KernelRequest& request) {
    const std::string key = key_of(request);
    if (const auto bytes = load_cached(key))
        if (auto object = from_bytes(*bytes)) {
            report(request, *object);
            return std::move(*object);
        }
    Result<KernelObject> object = fail(Status::out_of_resources);
    if (const auto crash = run_guarded([&] { object = generate_code(request); }))
        return fail(Status::out_of_resources, *crash);
    if (object) {
        report(request, *object);
        store_cached(key, to_bytes(*object));
    }
    return object;
}

class JitExecutable final : public Executable {
public:
    JitExecutable(std::shared_ptr<const Module> module, const Target& target)
        : module_(std::move(module)), local_memory_bytes_(target.code.local_memory_bytes) {}

    Result<const CompiledKernel*> function(std::string_view name, const std::optional<WorkGroups>& groups) override {
        const KernelInfo* kernel = find(name);
        if (kernel == nullptr)
            return fail(Status::invalid_kernel_name, "the program has no kernel " + std::string{name});
        Lock lock(mutex_);
        auto [entry, is_new] = entries_.try_emplace({std::string{name}, groups});
        if (is_new || !entry->second.object) {
            auto made = make(*kernel, groups);
            if (!made) {
                entries_.erase(entry);
                return fail(made.error());
            }
            entry->second = std::move(*made);
        }
        return &entry->second.code;
    }

private:
    struct Entry {
        std::unique_ptr<LoadedObject> object;
        CompiledKernel code;
    };

    const KernelInfo* find(std::string_view name) const {
        const auto kernels = module_->kernels();
        const auto found =
            std::find_if(kernels.begin(), kernels.end(), [&](const KernelInfo& kernel) { return kernel.name == name; });
        return found == kernels.end() ? nullptr : &*found;
    }

    Result<Entry> make(const KernelInfo& kernel, const std::optional<WorkGroups>& groups) const {
        POLDER_ASSIGN(object, make_object({static_cast<const CompiledModule&>(*module_), kernel, groups}));
        if (local_memory_bytes_ != 0 && object.local_bytes > local_memory_bytes_)
            return fail(Status::out_of_resources,
                        "kernel " + kernel.name + " needs " + std::to_string(object.local_bytes) +
                            " bytes of local memory; the device has " + std::to_string(local_memory_bytes_));
        auto loaded = load_object(object.object, object.entry);
        if (!loaded)
            return fail(loaded.error());
        Entry entry;
        entry.code.function = reinterpret_cast<WorkGroupFunction>((*loaded)->address());
        entry.code.local_bytes = object.local_bytes;
        entry.code.scratch_bytes_per_work_item = object.scratch_bytes_per_work_item;
        entry.code.private_bytes_per_work_item = object.private_bytes_per_work_item;
        entry.code.preferred_multiple = object.vector_width;
        entry.code.stack_bytes = object.stack_bytes;
        entry.object = std::move(*loaded);
        return entry;
    }

    const std::shared_ptr<const Module> module_;
    const uint64_t local_memory_bytes_;
    Mutex mutex_;
    // Entries stay where they are: callers hold pointers to them.
    std::map<std::pair<std::string, std::optional<WorkGroups>>, Entry> entries_ POLDER_GUARDED_BY(mutex_);
};

} // namespace

bool is_worth_specialising(const WorkGroups& groups) {
    // Lanes are taken from one dimension, x unless the size is known; 16 is the widest vector. A single work-item,
    // too, is better off alone: the vectors that its source names stay whole.
    constexpr uint64_t lanes_max = 16;
    return groups.size[0] < lanes_max;
}

Result<std::shared_ptr<Executable>> Executable::open(std::shared_ptr<const Module> module, const Target& target) {
    if (module == nullptr || module->kind() != ModuleKind::executable)
        return fail(Status::invalid_program_executable, "not an executable program");
    return std::make_shared<JitExecutable>(std::move(module), target);
}

Installation installation() { return {paths().builtins, paths().problem}; }

// Contexts live as long as a compilation; what stays (the mapped library of built-ins, ORC's session) is small.
void unload() {}

} // namespace polder::compiler
