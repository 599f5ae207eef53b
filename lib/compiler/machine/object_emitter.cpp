#include "object_emitter.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <utility>

namespace polder::compiler {

// Null when LLVM has no code generator for the machine.
std::unique_ptr<ObjectEmitter::List> ObjectEmitter::make_list() {
    ++lists_made_;
    auto list = std::make_unique<List>();
    list->level = machine_.getOptLevel();
    list->passes.add(llvm::createTargetTransformInfoWrapperPass(machine_.getTargetIRAnalysis()));
    if (machine_.addPassesToEmitFile(list->passes, list->stream, nullptr, llvm::CodeGenFileType::ObjectFile))
        return nullptr;
    return list;
}

Result<std::string> ObjectEmitter::emit(llvm::Module& module) {
    // Debug information is rare, and has much state of its own.
    const bool is_kept = module.debug_compile_units().empty();
    std::unique_ptr<List> list = is_kept ? std::move(list_) : nullptr;
    if (list == nullptr || list->level != machine_.getOptLevel())
        list = make_list();
    if (list == nullptr)
        return fail(Status::out_of_resources, "no code generator for this processor");
    list->object.clear();
    list->passes.run(module);
    std::string object{list->object.data(), list->object.size()};
    if (is_kept)
        list_ = std::move(list);
    return object;
}

}  // namespace polder::compiler
