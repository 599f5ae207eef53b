// PTX of a kernel is taken from the disk cache or generated at the first request, and kept as long as the Executable.
#include "executable.h"

#include "builtins/builtins.h"
#include "code_generator.h"
#include "crash_guard.h"
#include "files/cache.h"
#include "module/byte_stream.h"
#include "module/kernel_parameters.h"
#include "warps.h"

#include <base/code_cache.h>
#include <base/made_once.h>

#include <algorithm>
#include <kernel/print_ring.h>
#include <polder/ptx_abi.h>

namespace polder::compiler {

template <Same<PtxKernel> T>
auto fields_of(T& kernel) {
    return std::tie(kernel.text, kernel.local_bytes, kernel.dynamic_local_bytes, kernel.prints);
}

namespace {

Result<std::string> key_of(const PtxRequest& request) {
    POLDER_ASSIGN(builtins, Builtins::for_nvptx());
    const ContentHash& library = builtins->hash();
    std::string groups = "any";
    if (request.groups) {
        groups = request.groups->ends == WorkGroups::Ends::whole ? "whole" : "ragged";
        for (const uint64_t size : request.groups->size)
            groups += " " + std::to_string(size);
    }
    return cache_key({"ptx",
                      request.module.bitcode(),
                      {reinterpret_cast<const char*>(library.data()), library.size()},
                      request.kernel.name,
                      request.processor,
                      "abi " + std::to_string(ptx_abi_version),
                      groups,
                      request.zeroed.local ? "zeroed local memory" : "",
                      request.zeroed.private_variables ? "zeroed variables" : "",
                      request.module.options().is_optimized ? "optimized" : "plain",
                      request.module.options().flushes_subnormals ? "flushed" : ""});
}

Result<PtxKernel> make_kernel(const PtxRequest& request) {
    POLDER_ASSIGN(key, key_of(request));
    if (const auto bytes = load_cached(key))
        if (auto kernel = from_bytes<PtxKernel>(*bytes))
            return std::move(*kernel);
    Result<PtxKernel> kernel = fail(Status::out_of_resources);
    if (const auto crash = run_guarded([&] { kernel = generate_ptx(request); }))
        return fail(Status::out_of_resources, *crash);
    if (kernel)
        store_cached(key, to_bytes(*kernel));
    return kernel;
}

// The disk cache for the driver, whose compiler makes machine code from PTX.
class DiskCodeCache final : public CodeCache {
public:
    std::optional<std::string> load(Parts parts) override { return load_cached(key_of(parts)); }
    void store(Parts parts, std::string_view bytes) override { store_cached(key_of(parts), bytes); }

private:
    static std::string key_of(Parts parts) {
        std::vector<std::string_view> all{"code of a driver"};
        all.insert(all.end(), parts.begin(), parts.end());
        return cache_key(all);
    }
};

void install_code_cache() {
    static const bool is_installed = [] {
        CodeCache::install(new DiskCodeCache);
        return true;
    }();
    static_cast<void>(is_installed);
}

class NvptxExecutable final : public Executable {
public:
    NvptxExecutable(std::shared_ptr<const Module> module, const Target& target, const ZeroedMemory& zeroed)
        : module_(std::move(module)), target_(target.code), zeroed_(zeroed) {}

    Result<const driver::KernelCode*> code(std::string_view name, const CodeVersion& version) override {
        const std::optional<WorkGroups>& groups = version.groups;
        const auto kernels = module_->kernels();
        const auto info = std::ranges::find(kernels, name, &KernelInfo::name);
        if (info == kernels.end())
            return fail(Status::invalid_kernel_name, "the program has no kernel " + std::string{name});
        POLDER_ASSIGN(entry, entries_.get({std::string{name}, groups}, [&] { return make(*info, groups); }));
        return &(*entry)->code;
    }

    // A work-group of any size is made of warps, so code for one size is not faster.
    [[nodiscard]] Specialising specialising(const WorkGroups&, const LaneDimensions&) const override {
        return Specialising::never;
    }

private:
    struct Entry {
        PtxKernel kernel;
        std::vector<driver::KernelParameter> parameters;
        driver::KernelCode code;
    };

    Result<std::unique_ptr<Entry>> make(const KernelInfo& info, const std::optional<WorkGroups>& groups) const {
        POLDER_ASSIGN(kernel, make_kernel({static_cast<const CompiledModule&>(*module_), info, groups,
                                           target_.processor, zeroed_}));
        if (target_.local_memory_bytes != 0 && kernel.local_bytes > target_.local_memory_bytes)
            return fail(Status::out_of_resources,
                        "kernel " + info.name + " needs " + std::to_string(kernel.local_bytes) +
                            " bytes of local memory; the device has " + std::to_string(target_.local_memory_bytes));
        auto entry = std::make_unique<Entry>();
        entry->kernel = std::move(kernel);
        entry->parameters = parameters_of(info);
        entry->code = driver::TargetCode{.format = driver::CodeFormat::ptx,
                                         .code = entry->kernel.text,
                                         .entry = info.name,
                                         .parameters = entry->parameters,
                                         .arguments_size = info.arguments_size,
                                         .local_bytes = entry->kernel.local_bytes,
                                         .dynamic_local_bytes = entry->kernel.dynamic_local_bytes,
                                         .print = entry->kernel.prints ? kernel::print_ring : nullptr,
                                         .preferred_multiple = warp_size};
        return entry;
    }

    const std::shared_ptr<const Module> module_;
    const driver::CodeTarget target_;
    const ZeroedMemory zeroed_;
    // An entry's code points into the entry.
    MadeOnce<std::pair<std::string, std::optional<WorkGroups>>, std::unique_ptr<Entry>> entries_;
};

} // namespace

Result<std::shared_ptr<Executable>> make_nvptx_executable(std::shared_ptr<const Module> module, const Target& target,
                                                          const ZeroedMemory& zeroed) {
    for (const KernelInfo& kernel : module->kernels())
        if (kernel.reqd_sub_group_size.value_or(warp_size) != warp_size)
            return fail(Status::out_of_resources, "error: kernel '" + kernel.name + "' requires sub-groups of " +
                                                      std::to_string(*kernel.reqd_sub_group_size) +
                                                      " work-items; the device has " + std::to_string(warp_size));
    install_code_cache();
    return std::shared_ptr<Executable>(std::make_shared<NvptxExecutable>(std::move(module), target, zeroed));
}

} // namespace polder::compiler
