// LLVM detects the processor's name and features. With POLDER_CPU_TARGET the features are those that both this machine and the
// named processor have, so that the code runs here.
#include "host.h"

#include "llvm_compat.h"
#include "pass_options.h"

#include <base/log.h>
#include <base/options.h>

#include <algorithm>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>
#include <string_view>
#include <vector>

namespace polder::compiler {
namespace {

// POLDER_CPU_TARGET, when it is a processor that LLVM knows; else empty.
std::string chosen_processor() {
    const std::string& chosen = options::cpu_target();
#if defined(__x86_64__)
    if (chosen.empty() || llvm::X86::parseArchX86(chosen, true) != llvm::X86::CK_None)
        return chosen;
#else
    if (chosen.empty())
        return {};
#endif
    POLDER_LOG(warning, "POLDER_CPU_TARGET=\"%s\" is not a processor that LLVM knows; it is ignored", chosen.c_str());
    return {};
}

// AMD's instructions that extract and insert bits of a register (SSE4A) have no form for AVX. LLVM moves bytes with them,
// and each takes more than a hundred cycles while the upper halves of registers are in use (measured on Zen 3).
constexpr llvm::StringLiteral slow_beside_avx = "sse4a";

// The features of this machine that `processor` has, too; all of them for an empty name.
std::string host_features([[maybe_unused]] const std::string& processor) {
    llvm::StringMap<bool> chosen;
#if defined(__x86_64__)
    llvm::SmallVector<llvm::StringRef, 64> names;
    if (!processor.empty())
        llvm::X86::getFeaturesForCPU(processor, names);
    for (const llvm::StringRef name : names)
        llvm::X86::updateImpliedFeatures(name, true, chosen);  // the names are only those that no other implies
    for (const llvm::StringRef name : names)
        chosen[name] = true;
    chosen["64bit"] = true;  // no name implies it
#endif
    std::vector<std::string> features;
    for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
        const bool is_used = feature.second && feature.first() != slow_beside_avx &&
                             (processor.empty() || chosen.lookup(feature.first()));
        features.push_back((is_used ? "+" : "-") + feature.first().str());
    }
    std::sort(features.begin(), features.end());
    std::string joined;
    for (const std::string& feature : features)
        joined += (joined.empty() ? "" : ",") + feature;
    return joined;
}

// Those of `host`'s features that its processor's name does not imply. LLVM finds the subtarget of a function by the text of its features, for
// each pass that asks, and each module has the text as an attribute, so a short one is cheaper. Where features depend on each other so that the
// short list would mean something else, the result is the whole list.
std::string features_beyond_name(const Host& host, const llvm::TargetMachine& machine) {
    Host changed = host;
    changed.features.clear();
    const auto named = create_target_machine(changed);
    const auto is_implied = [&](llvm::StringRef feature) {
        for (const llvm::SubtargetFeatureKV& known : named->getMCSubtargetInfo()->getAllProcessorFeatures())
            if (known.Key == feature.drop_front())
                return named->getMCSubtargetInfo()->getFeatureBits()[known.Value] == feature.starts_with("+");
        return false;
    };
    for (const llvm::StringRef feature : llvm::split(host.features, ","))
        if (!is_implied(feature))
            changed.features += (changed.features.empty() ? "" : ",") + feature.str();
    const bool is_same = create_target_machine(changed)->getMCSubtargetInfo()->getFeatureBits() ==
                         machine.getMCSubtargetInfo()->getFeatureBits();
    return is_same ? changed.features : host.features;
}

Host detect() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    set_pass_options();
    Host host;
    host.triple = llvm::Triple(llvm::sys::getProcessTriple());
    const std::string chosen = chosen_processor();
    host.cpu = chosen.empty() ? llvm::sys::getHostCPUName().str() : chosen;
    host.features = host_features(chosen);
    const auto has = [&](const char* feature) { return host.features.find(feature) != std::string::npos; };
    host.preferred_vector_bits = has("+avx512vl") ? "512" : "256";
    host.has_wide_registers = has("+avx512vl") && has("+avx512bw") && has("+avx512dq");
    host.sub_group_size = has("+avx512f") ? 16 : has("+avx") ? 8 : 4;
    const auto machine = create_target_machine(host);
    host.data_layout = machine->createDataLayout().getStringRepresentation();
    host.features = features_beyond_name(host, *machine);
    return host;
}

}  // namespace

const Host& host() {
    static const Host* const instance = new Host(detect());
    return *instance;
}

std::unique_ptr<llvm::TargetMachine> create_target_machine(const Host& target) {
    std::string error;
    const llvm::Target* const found = compat::lookup_target(target.triple, error);
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
    options.EmitStackSizeSection = true;
    return compat::create_target_machine(*found, target.triple, target.cpu, target.features, options,
                                         llvm::CodeGenOptLevel::Default);
}

std::unique_ptr<llvm::TargetMachine> create_host_target_machine() { return create_target_machine(host()); }

void retarget_to_host(llvm::Module& module, const AddressSpaceNumbers& numbers) {
    retarget(module, numbers, [](unsigned) { return 0U; });
    compat::set_triple(module, host().triple);
    module.setDataLayout(host().data_layout);
}

}  // namespace polder::compiler
