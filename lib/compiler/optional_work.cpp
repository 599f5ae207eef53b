#include <compiler/optional_work.h>

#include <dlfcn.h>
#include <llvm/IR/OptBisect.h>
#include <utility>

namespace polder::compiler {
namespace {

thread_local const OptionalWork* innermost = nullptr;

// The start of the program or library that contains `function`; null when it is not found.
const void* object_with(const void* function) {
    Dl_info found{};
    return dladdr(function, &found) != 0 ? found.dli_fbase : nullptr;
}

}  // namespace

OptionalWork::OptionalWork(IsUnneeded is_unneeded) : is_unneeded_(std::move(is_unneeded)), outer_(innermost) {
    innermost = this;
}

OptionalWork::~OptionalWork() { innermost = outer_; }

bool OptionalWork::is_unneeded() {
    return innermost != nullptr && innermost->is_unneeded_ && innermost->is_unneeded_();
}

OptionalWork::IsUnneeded OptionalWork::of_this_thread() {
    return innermost == nullptr ? IsUnneeded{} : innermost->is_unneeded_;
}

// lib/api/no_destructors.cpp is part of the shared library, not of programs that contain Polder's archives.
bool may_outlive_static_objects() {
    const void* const ours = object_with(reinterpret_cast<const void*>(&may_outlive_static_objects));
    const void* const llvms = object_with(reinterpret_cast<const void*>(&llvm::getGlobalPassGate));
    return ours != nullptr && ours == llvms;
}

}  // namespace polder::compiler
