#include "nvptx.h"

#include "llvm_compat.h"
#include "pass_options.h"

#include <algorithm>
#include <cstdlib>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/TargetSelect.h>
#include <string_view>

namespace polder::compiler {
namespace {

// The oldest processor with independent threads and PTX's memory model.
constexpr const char* oldest_processor = "sm_70";

const llvm::Triple& nvptx_triple() {
    static const auto* const triple = new llvm::Triple("nvptx64-nvidia-cuda");
    return *triple;
}

const llvm::Target* nvptx_target() {
    static const llvm::Target* const target = [] {
        LLVMInitializeNVPTXTargetInfo();
        LLVMInitializeNVPTXTarget();
        LLVMInitializeNVPTXTargetMC();
        LLVMInitializeNVPTXAsmPrinter();
        set_pass_options();
        std::string error;
        return compat::lookup_target(nvptx_triple(), error);
    }();
    return target;
}

const std::string& data_layout() {
    static const auto* const layout =
        new std::string(create_nvptx_machine(oldest_processor)->createDataLayout().getStringRepresentation());
    return *layout;
}

// The feature that selects LLVM's version of PTX. Without it LLVM takes the oldest version that supports the processor. It is an error to select
// an even older one.
std::string features_of(const std::string& processor, PtxVersion needed) {
    constexpr unsigned of_activemask = 63;  // sub-groups need it
    constexpr unsigned of_hopper = 78;
    constexpr unsigned of_blackwell = 86;
    const long number = std::strtol(processor.c_str() + std::string_view{"sm_"}.size(), nullptr, 10);
    const unsigned ptx = std::max(static_cast<unsigned>(needed), number < 75 ? of_activemask : 0);
    unsigned oldest = 0;
    if (number >= 100 || number == 88)
        oldest = of_blackwell;
    else if (number >= 89)
        oldest = of_hopper;
    return ptx > oldest ? "+ptx" + std::to_string(ptx) : "";
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> create_nvptx_machine(const std::string& processor, PtxVersion version) {
    const llvm::Target* const target = nvptx_target();
    if (target == nullptr || !processor.starts_with("sm_"))
        return nullptr;
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
    auto machine = compat::create_target_machine(*target, nvptx_triple(), processor, features_of(processor, version),
                                                 options, llvm::CodeGenOptLevel::Default);
    if (machine == nullptr || !machine->getMCSubtargetInfo()->isCPUStringValid(processor))
        return nullptr;
    return machine;
}

void retarget_to_nvptx(llvm::Module& module, const AddressSpaceNumbers& numbers) {
    constexpr AddressSpaceMap from_spir = [](unsigned space) {
        switch (space) {
        case spir64_address_spaces.global:
        case spir64_address_spaces.constant: return nvptx_global_space;
        case spir64_address_spaces.local: return nvptx_local_space;
        default: return 0U;
        }
    };
    constexpr AddressSpaceMap from_nvptx = [](unsigned space) {
        return space == nvptx64_address_spaces.constant ? nvptx_global_space : space;
    };
    retarget(module, numbers, numbers.constant == spir64_address_spaces.constant ? from_spir : from_nvptx);
    compat::set_triple(module, nvptx_triple());
    module.setDataLayout(data_layout());
}

}  // namespace polder::compiler
