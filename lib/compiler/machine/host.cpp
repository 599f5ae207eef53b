#include "host.h"

#include "llvm_compat.h"

#include <algorithm>
#include <llvm/ADT/StringMap.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <string_view>
#include <vector>

namespace polder::compiler {
namespace {

std::string host_features() {
    std::vector<std::string> features;
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
        features.push_back((feature.second ? "+" : "-") + feature.first().str());
    std::sort(features.begin(), features.end());
    std::string joined;
    for (const std::string& feature : features)
        joined += (joined.empty() ? "" : ",") + feature;
    return joined;
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Host& host) {
    std::string error;
    const llvm::Target* target = compat::lookup_target(host.triple, error);
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
    options.EmitStackSizeSection = true;
    return compat::create_target_machine(*target, host.triple, host.cpu, host.features, options,
                                         llvm::CodeGenOptLevel::Default);
}

Host detect() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    Host host;
    host.triple = llvm::Triple(llvm::sys::getProcessTriple());
    host.cpu = llvm::sys::getHostCPUName().str();
    host.features = host_features();
    host.preferred_vector_bits = host.features.find("+avx512vl") != std::string::npos ? "512" : "256";
    host.data_layout = make_target_machine(host)->createDataLayout().getStringRepresentation();
    return host;
}

} // namespace

const Host& host() {
    static const Host* const instance = new Host(detect());
    return *instance;
}

uint32_t host_sub_group_size() {
    const auto has = [](std::string_view feature) { return host().features.find(feature) != std::string::npos; };
    return has("+avx512f") ? 16 : has("+avx") ? 8 : 4;
}

std::unique_ptr<llvm::TargetMachine> create_host_target_machine() { return make_target_machine(host()); }

void retarget_to_host(llvm::Module& module, const AddressSpaceNumbers& numbers) {
    retarget(module, numbers, [](unsigned) { return 0U; });
    compat::set_triple(module, host().triple);
    module.setDataLayout(host().data_layout);
}

} // namespace polder::compiler
