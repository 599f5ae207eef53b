#include "builtins.h"

#include "intrinsics.h"
#include "program/paths.h"
#include "targets/host/retarget.h"

#include <base/mutex.h>

#include <array>
#include <llvm/ADT/StringSet.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Linker/Linker.h>
#include <set>

namespace polder::compiler {
namespace {

std::string with_space(std::string_view name, char from, char to) {
    std::string changed{name};
    const std::string pattern = std::string{"U3AS"} + from;
    for (size_t at = changed.find(pattern); at != std::string::npos; at = changed.find(pattern, at + 5))
        changed[at + 4] = to;
    return changed;
}

// Mangled numbers of spir64's address spaces.
constexpr char global_space = '1';
constexpr char constant_space = '2';
constexpr char local_space = '3';
constexpr char generic_space = '4';

struct Substitution {
    char from;
    char to;
};
constexpr std::array substitutions{Substitution{generic_space, global_space}, Substitution{global_space, generic_space},
                                   Substitution{local_space, generic_space}, Substitution{constant_space, global_space},
                                   Substitution{local_space, global_space}};

bool is_undefined(const llvm::GlobalValue& value) {
    return value.isDeclaration() && !value.use_empty() && !value.getName().starts_with("llvm.") &&
           !is_work_group_leaf(std::string_view{value.getName()});
}

// Makes uses of `function` uses of `name`; answers what has that name now.
llvm::Function* rename(llvm::Function& function, const std::string& name) {
    if (function.getName() == name)
        return &function;
    llvm::Function* existing = function.getParent()->getFunction(name);
    if (existing == nullptr) {
        function.setName(name);
        return &function;
    }
    function.replaceAllUsesWith(existing);
    function.eraseFromParent();
    return existing;
}

// Links needed definitions in rounds, until nothing that the library has is undefined.
class Linking {
public:
    Linking(const Builtins& builtins, const BuiltinArchive& archive, llvm::Module& module)
        : builtins_(builtins), archive_(archive), module_(module), linker_(module) {}

    Result<void> run() {
        for (std::set<uint32_t> blobs = needed_blobs(); !blobs.empty(); blobs = needed_blobs())
            for (const uint32_t number : blobs)
                POLDER_TRY(link(number));
        for (const std::string& name : linked_)
            if (llvm::GlobalValue* value = module_.getNamedValue(name); value != nullptr && !value->isDeclaration())
                make_own(*value);
        return {};
    }

private:
    std::set<uint32_t> needed_blobs() {
        std::set<uint32_t> blobs;
        for (llvm::Function& function : llvm::make_early_inc_range(module_))
            if (is_undefined(function))
                if (const auto name = builtins_.resolve(function.getName()))
                    need(*rename(function, *name), blobs);
        for (llvm::GlobalVariable& variable : module_.globals())
            if (is_undefined(variable) && archive_.find(variable.getName()))
                need(variable, blobs);
        return blobs;
    }

    // Each name is tried once, so that a damaged library cannot keep us here.
    void need(const llvm::GlobalValue& value, std::set<uint32_t>& blobs) {
        if (value.isDeclaration() && tried_.insert(value.getName().str()).second)
            blobs.insert(*archive_.find(value.getName()));
    }

    Result<void> link(uint32_t number) {
        const auto bytes = archive_.blob(number);
        if (!bytes)
            return damaged();
        auto part = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(*bytes, "builtins"), module_.getContext());
        if (!part) {
            llvm::consumeError(part.takeError());
            return damaged();
        }
        const auto remember = [this](llvm::Module&, const llvm::StringSet<>& names) {
            for (const auto& name : names)
                linked_.push_back(name.first().str());
        };
        return linker_.linkInModule(std::move(*part), llvm::Linker::LinkOnlyNeeded, remember) ? damaged()
                                                                                              : Result<void>{};
    }

    static void make_own(llvm::GlobalValue& value) {
        value.setLinkage(llvm::GlobalValue::InternalLinkage);
        if (auto* function = llvm::dyn_cast<llvm::Function>(&value))
            function->addFnAttr(builtin_attribute);
    }

    static Result<void> damaged() {
        return fail(Status::compiler_not_available, "error: " + paths().builtins + " is damaged");
    }

    const Builtins& builtins_;
    const BuiltinArchive& archive_;
    llvm::Module& module_;
    llvm::Linker linker_;
    std::set<std::string> tried_;
    std::vector<std::string> linked_;
};

} // namespace

Result<const Builtins*> Builtins::get() {
    static auto* const mutex = new Mutex;
    static const Builtins* instance = nullptr;
    Lock lock(*mutex);
    if (instance == nullptr) {
        if (paths().builtins.empty())
            return fail(Status::compiler_not_available, paths().problem);
        auto archive = BuiltinArchive::open(paths().builtins);
        if (!archive)
            return fail(Status::compiler_not_available, "error: " + std::string{archive.error().detail()});
        instance = new Builtins(std::move(*archive));
    }
    return instance;
}

std::optional<std::string> Builtins::resolve(std::string_view name) const {
    if (archive_->find(name))
        return std::string{name};
    for (const Substitution& substitution : substitutions)
        if (std::string other = with_space(name, substitution.from, substitution.to); archive_->find(other))
            return other;
    return std::nullopt;
}

Result<void> Builtins::link_into(llvm::Module& module) const { return Linking{*this, *archive_, module}.run(); }

} // namespace polder::compiler
