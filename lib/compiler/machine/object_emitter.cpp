#include "object_emitter.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Utils.h>
#include <utility>

namespace polder::compiler {

void add_loop_passes(llvm::legacy::PassManager& passes, const llvm::TargetMachine& machine, Reduction reduction) {
    if (machine.getOptLevel() == llvm::CodeGenOptLevel::None)
        return;
    passes.add(llvm::createCanonicalizeFreezeInLoopsPass());
    if (reduction == Reduction::on)
        passes.add(llvm::createLoopStrengthReducePass());
}

// Null when LLVM has no code generator for the machine.
std::unique_ptr<ObjectEmitter::List> ObjectEmitter::make_list(Reduction reduction) {
    ++lists_made_;
    auto list = std::make_unique<List>();
    list->level = machine_.getOptLevel();
    list->passes.add(llvm::createTargetTransformInfoWrapperPass(machine_.getTargetIRAnalysis()));
    add_loop_passes(list->passes, machine_, reduction);
    if (machine_.addPassesToEmitFile(list->passes, list->stream, nullptr, llvm::CodeGenFileType::ObjectFile))
        return nullptr;
    return list;
}

Result<std::string> ObjectEmitter::emit(llvm::Module& module, Reduction reduction) {
    // Debug information is rare, and has much state of its own.
    const bool is_kept = module.debug_compile_units().empty();
    std::unique_ptr<List>& kept = lists_[static_cast<size_t>(reduction)];
    std::unique_ptr<List> list = is_kept ? std::move(kept) : nullptr;
    if (list == nullptr || list->level != machine_.getOptLevel())
        list = make_list(reduction);
    if (list == nullptr)
        return fail(Status::out_of_resources, "no code generator for this processor");
    list->object.clear();
    list->passes.run(module);
    std::string object{list->object.data(), list->object.size()};
    if (is_kept)
        kept = std::move(list);
    return object;
}

}  // namespace polder::compiler
