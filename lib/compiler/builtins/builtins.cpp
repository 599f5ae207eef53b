// Linking works in rounds: collect the undefined functions of the module that the library has, link the small modules that define
// them, repeat until no such function is left. Where the library has no function for an address space, a substitution
// table names the one for another address space, and pointers are cast.
#include "builtins.h"

#include "files/paths.h"
#include "intrinsics.h"
#include "machine/host.h"
#include "machine/retarget.h"

#include <base/mutex.h>

#include <array>
#include <filesystem>
#include <llvm/ADT/StringSet.h>
#include <llvm/ADT/Twine.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Linker/Linker.h>
#include <set>

namespace polder::compiler {
namespace {

// Mangled numbers of spir64's address spaces.
constexpr char global_space = '1';
constexpr char constant_space = '2';
constexpr char local_space = '3';
constexpr char generic_space = '4';
constexpr char private_space = 0;  // has no number in a name

std::string with_space(std::string_view name, char from, char to) {
    std::string changed{name};
    const std::string pattern = std::string{"U3AS"} + from;
    const std::string other = to == private_space ? std::string{} : std::string{"U3AS"} + to;
    for (size_t at = changed.find(pattern); at != std::string::npos; at = changed.find(pattern, at + other.size()))
        changed.replace(at, pattern.size(), other);
    return changed;
}

bool is_undefined(const llvm::GlobalValue& value) {
    return value.isDeclaration() && !value.use_empty() && !value.getName().starts_with("llvm.") &&
           !is_work_group_intrinsic(std::string_view{value.getName()});
}

// The mangled name of the form for wide registers.
std::string wide_name(llvm::StringRef name) {
    constexpr llvm::StringLiteral prefix = "polder_wide_";
    size_t length = 0;
    if (!name.consume_front("_Z") || name.consumeInteger(10, length))
        return {};
    return ("_Z" + llvm::Twine(length + prefix.size()) + prefix + name).str();
}

// Replaces all uses of `function` by the function called `name`, and returns that function.
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
                if (const auto symbol = builtins_.resolve(function.getName()))
                    need(symbol->cast_from ? *call_from(function, *symbol) : *rename(function, symbol->name), blobs);
        for (llvm::GlobalVariable& variable : module_.globals())
            if (is_undefined(variable) && archive_.find(variable.getName()))
                need(variable, blobs);
        return blobs;
    }

    // Defines `function` as a call of the function that `symbol` names, with pointers cast. Returns the called function.
    llvm::Function* call_from(llvm::Function& function, const Builtins::Symbol& symbol) {
        llvm::LLVMContext& context = module_.getContext();
        llvm::SmallVector<llvm::Type*> types;
        for (const llvm::Argument& argument : function.args()) {
            llvm::Type* const type = argument.getType();
            const bool is_cast = type->isPointerTy() && type->getPointerAddressSpace() == *symbol.cast_from;
            types.push_back(is_cast ? llvm::PointerType::get(context, 0) : type);
        }
        llvm::FunctionCallee other =
            module_.getOrInsertFunction(symbol.name, llvm::FunctionType::get(function.getReturnType(), types, false));
        llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", &function));
        llvm::SmallVector<llvm::Value*> arguments;
        for (auto [argument, type] : llvm::zip(function.args(), types))
            arguments.push_back(argument.getType() == type ? static_cast<llvm::Value*>(&argument)
                                                           : builder.CreateAddrSpaceCast(&argument, type));
        llvm::Value* const result = builder.CreateCall(other, arguments);
        function.getReturnType()->isVoidTy() ? builder.CreateRetVoid() : builder.CreateRet(result);
        function.addFnAttr(llvm::Attribute::AlwaysInline);
        make_own(function);
        return llvm::cast<llvm::Function>(other.getCallee());
    }

    // Each name is tried once, so that a damaged library cannot cause an endless loop.
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

}  // namespace

// Where the library has no function for one address space in a name, the name with another address space is used.
struct Builtins::Substitution {
    char from;
    char to;
    std::optional<unsigned> cast_from;
};

// All address spaces are one on the host.
std::span<const Builtins::Substitution> Builtins::host_substitutions() {
    static constexpr std::array list{
        Substitution{generic_space, global_space, {}}, Substitution{global_space, generic_space, {}},
        Substitution{local_space, generic_space, {}}, Substitution{constant_space, global_space, {}},
        Substitution{local_space, global_space, {}}};
    return list;
}

// Constant memory is global memory, and private pointers are generic ones.
std::span<const Builtins::Substitution> Builtins::nvptx_substitutions() {
    static constexpr std::array list{
        Substitution{constant_space, global_space, {}}, Substitution{generic_space, private_space, {}},
        Substitution{global_space, generic_space, 1},   Substitution{local_space, generic_space, 3},
        Substitution{constant_space, generic_space, 1}, Substitution{global_space, private_space, 1},
        Substitution{local_space, private_space, 3},    Substitution{constant_space, private_space, 1}};
    return list;
}

Result<const Builtins*> Builtins::open(const std::string& file, std::span<const Substitution> substitutions,
                                       Forms forms) {
    POLDER_ASSIGN(archive, BuiltinArchive::open(file));
    return new Builtins(std::move(archive), substitutions, forms);
}

namespace {

// One library, opened at first use. After a failure the next use tries again.
class Library {
public:
    template <class Open>
    Result<const Builtins*> get(Open&& open) {
        const Lock lock(mutex_);
        if (instance_ == nullptr) {
            if (paths().builtins.empty())
                return fail(Status::compiler_not_available, paths().problem);
            auto opened = open();
            if (!opened)
                return fail(Status::compiler_not_available, "error: " + std::string{opened.error().detail()});
            instance_ = *opened;
        }
        return instance_;
    }

private:
    Mutex mutex_;
    const Builtins* instance_ POLDER_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace

Result<const Builtins*> Builtins::for_host() {
    static Library& library = *new Library;
    return library.get([] {
        return open(paths().builtins, host_substitutions(), host().has_wide_registers ? Forms::wide : Forms::common);
    });
}

Result<const Builtins*> Builtins::for_nvptx() {
    static Library& library = *new Library;
    return library.get([] {
        const std::filesystem::path host = paths().builtins;
        return open((host.parent_path() / "polder-builtins-nvptx.bca").string(), nvptx_substitutions(), Forms::common);
    });
}

std::optional<Builtins::Symbol> Builtins::resolve(std::string_view name) const {
    if (forms_ == Forms::wide)
        if (std::string wide = wide_name(name); archive_->find(wide))
            return Symbol{std::move(wide), {}};
    if (archive_->find(name))
        return Symbol{std::string{name}, {}};
    for (const Substitution& substitution : substitutions_) {
        std::string other = with_space(name, substitution.from, substitution.to);
        if (other != name && archive_->find(other))
            return Symbol{std::move(other), substitution.cast_from};
    }
    return std::nullopt;
}

Result<void> Builtins::link_into(llvm::Module& module) const { return Linking{*this, *archive_, module}.run(); }

}  // namespace polder::compiler
