// Calls are matched by the name of the called function. A table maps beginnings of built-in functions' names to the feature that
// the device lacks, for the message.
#include "unsupported_code.h"

#include "block_kernels.h"
#include "builtins/builtins.h"
#include "intrinsics.h"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Metadata.h>
#include <map>

namespace polder::compiler {
namespace {

constexpr const char* lines_metadata = "polder.lines";
constexpr const char* assembly_name = "<inline assembly>";

// A prefix of built-in functions' names, and the feature that a device needs for them.
struct Feature {
    std::string_view begin;
    std::string_view feature;
};
constexpr Feature features[] = {
    {"read_image", "images"},
    {"write_image", "images"},
    {"get_image_", "images"},
    {"__translate_sampler_initializer", "images"},
    {"__read_pipe", "pipes"},
    {"__write_pipe", "pipes"},
    {"__reserve_read_pipe", "pipes"},
    {"__reserve_write_pipe", "pipes"},
    {"__commit_read_pipe", "pipes"},
    {"__commit_write_pipe", "pipes"},
    {"__work_group_", "pipes"},
    {"__sub_group_", "pipes"},
    {"__get_pipe_", "pipes"},
    {"is_valid_reserve_id", "pipes"},
    {"__polder_null_reservation", "pipes"},
    {"__enqueue_kernel", "device-side enqueue"},
    {"__get_kernel_", "device-side enqueue"},
    {"enqueue_marker", "device-side enqueue"},
    {"get_default_queue", "device-side enqueue"},
    {"ndrange_", "device-side enqueue"},
    {"create_user_event", "device-side enqueue"},
    {"intel_", "an extension of Intel's"},
    {"sub_group_", "sub-groups"},
    {"get_sub_group_", "sub-groups"},
    {"get_num_sub_groups", "sub-groups"},
    {"arm_", "an extension of Arm's"},
    {"amd_", "an extension of AMD's"},
    {"nv_", "an extension of NVIDIA's"},
};

std::string_view feature_of(std::string_view function) {
    for (const Feature& each : features)
        if (function.starts_with(each.begin))
            return each.feature;
    return {};
}

bool is_assembly(const llvm::CallBase& call) {
    const auto* assembly = llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand());
    return assembly != nullptr && !llvm::StringRef(assembly->getAsmString()).trim().empty();
}

bool is_unavailable(const llvm::GlobalValue& symbol) {
    const std::string_view name{symbol.getName()};
    return symbol.isDeclaration() && !symbol.use_empty() && !symbol.getName().starts_with("llvm.") &&
           !is_work_group_intrinsic(name) && name != "polder_printf" && !is_device_enqueue(symbol.getName());
}

// The name to report for a call of an undefined function or of inline assembly; else empty.
std::string reported_name(const llvm::CallBase& call) {
    if (is_assembly(call))
        return assembly_name;
    const llvm::Function* callee = call.getCalledFunction();
    return callee != nullptr && is_unavailable(*callee) ? callee->getName().str() : std::string{};
}

std::string line_of(const llvm::Instruction& instruction) {
    const llvm::DILocation* location = instruction.getDebugLoc().get();
    if (location == nullptr)
        return {};
    return location->getFilename().str() + ":" + std::to_string(location->getLine()) + ":" +
           std::to_string(location->getColumn()) + ": ";
}

// For each name, the source locations that use it, such as "program.cl:3:7: ".
using Lines = std::multimap<std::string, std::string>;

Lines kept_lines(const llvm::Module& module) {
    Lines lines;
    const llvm::NamedMDNode* kept = module.getNamedMetadata(lines_metadata);
    if (kept == nullptr)
        return lines;
    for (const llvm::MDNode* node : kept->operands()) {
        const auto text = [node](unsigned i) {
            const auto* string = llvm::dyn_cast_or_null<llvm::MDString>(node->getOperand(i).get());
            return string != nullptr ? string->getString().str() : std::string{};
        };
        if (node->getNumOperands() == 2)
            lines.emplace(text(0), text(1));
    }
    return lines;
}

std::string described(const llvm::GlobalValue& symbol) {
    const std::string name = symbol.getName().str();
    const std::string readable = llvm::demangle(name);
    const std::string_view feature = feature_of(readable);
    if (!feature.empty())
        return "'" + readable + "' needs " + std::string{feature} + ", which the device does not have";
    return "undefined symbol '" + readable + "'" + (readable == name ? "" : " (" + name + ")");
}

void report(const Lines& lines, const std::string& name, const std::string& text, std::string& log) {
    const auto [begin, end] = lines.equal_range(name);
    if (begin == end)
        log += "error: " + text + "\n";
    for (auto line = begin; line != end; ++line)
        log += line->second + "error: " + text + "\n";
}

bool has_assembly(const llvm::Module& module) {
    for (const llvm::Function& function : module)
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction); call != nullptr && is_assembly(*call))
                return true;
    return false;
}

}  // namespace

bool may_be_unsupported(const llvm::Module& module) {
    const auto builtins = Builtins::for_host();
    for (const llvm::Function& function : module)
        if (is_unavailable(function) && builtins && !(*builtins)->resolve(std::string_view{function.getName()}))
            return true;
    return has_assembly(module);
}

void keep_lines(llvm::Module& module, const llvm::Module& same) {
    llvm::LLVMContext& context = module.getContext();
    const auto builtins = Builtins::for_host();
    llvm::NamedMDNode* kept = module.getOrInsertNamedMetadata(lines_metadata);
    for (const llvm::Function& function : same)
        for (const llvm::Instruction& instruction : llvm::instructions(function)) {
            const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
            const std::string name = call != nullptr ? reported_name(*call) : std::string{};
            const std::string line = line_of(instruction);
            if (name.empty() || line.empty() || (builtins && (*builtins)->resolve(name)))
                continue;
            kept->addOperand(
                llvm::MDTuple::get(context, {llvm::MDString::get(context, name), llvm::MDString::get(context, line)}));
        }
}

Result<void> check_supported(llvm::Module& module, std::string& log) {
    const Lines lines = kept_lines(module);
    if (llvm::NamedMDNode* kept = module.getNamedMetadata(lines_metadata))
        kept->eraseFromParent();
    bool is_complete = true;
    const auto check = [&](const llvm::GlobalValue& symbol) {
        if (!is_unavailable(symbol))
            return;
        report(lines, symbol.getName().str(), described(symbol), log);
        is_complete = false;
    };
    for (const llvm::Function& function : module)
        check(function);
    for (const llvm::GlobalVariable& variable : module.globals())
        check(variable);
    if (has_assembly(module)) {
        report(lines, assembly_name, "inline assembly is not supported", log);
        is_complete = false;
    }
    return is_complete ? Result<void>{} : fail(Status::link_program_failure);
}

}  // namespace polder::compiler
