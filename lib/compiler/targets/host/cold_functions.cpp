// A function is separated when all that it reaches is built in: functions, intrinsics, constants. Its tree is cloned into a module, whose text is
// hashed. (Bitcode also lists the kinds of metadata that the context knows, which differ between kernels.) The hash is part of the symbol, so code of
// one symbol is the same in all kernels.
#include "cold_functions.h"

#include "files/cache.h"
#include "machine/retarget.h"
#include "module/byte_stream.h"
#include "targets/host/workgroup/vectorizer/rare_calls.h"

#include <base/mutex.h>

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <map>

namespace polder::compiler {
namespace {

// What a function reaches.
class Tree {
public:
    explicit Tree(llvm::Function& root) {
        members_.insert(&root);
        for (size_t i = 0; i < members_.size() && is_built_in_; ++i)
            if (auto* const function = llvm::dyn_cast<llvm::Function>(members_[i]))
                add_operands(*function);
            else
                add(*llvm::cast<llvm::GlobalVariable>(members_[i])->getInitializer());
    }

    // Whether all of it is the library's.
    [[nodiscard]] bool is_built_in() const { return is_built_in_; }
    [[nodiscard]] bool contains(const llvm::GlobalValue* value) const {
        return members_.contains(const_cast<llvm::GlobalValue*>(value));
    }

private:
    void add_operands(llvm::Function& function) {
        is_built_in_ &= function.hasFnAttribute(builtin_attribute);
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            for (const llvm::Use& operand : instruction.operands())
                if (auto* const constant = llvm::dyn_cast<llvm::Constant>(operand.get()))
                    add(*constant);
    }

    void add(llvm::Constant& constant) {
        auto* const value = llvm::dyn_cast<llvm::GlobalValue>(&constant);
        if (value == nullptr) {
            is_built_in_ &= !llvm::isa<llvm::BlockAddress>(constant);
            for (const llvm::Use& operand : constant.operands())
                if (auto* const inner = llvm::dyn_cast<llvm::Constant>(operand.get()))
                    add(*inner);
            return;
        }
        const auto* const function = llvm::dyn_cast<llvm::Function>(value);
        if (function != nullptr && function->isIntrinsic())
            return;
        const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(value);
        is_built_in_ &= !value->isDeclaration() && value->hasLocalLinkage() &&
                        (function != nullptr || (variable != nullptr && variable->isConstant()));
        members_.insert(value);
    }

    llvm::SmallSetVector<llvm::GlobalValue*, 8> members_;
    bool is_built_in_ = true;
};

bool is_cold(const llvm::Function& function) {
    return !function.isDeclaration() && function.hasLocalLinkage() && function.hasFnAttribute(llvm::Attribute::Cold) &&
           function.hasFnAttribute(llvm::Attribute::NoInline);
}

// Whether the function computes with numbers only. Those that get an image or another place in memory are often made for one kernel's arguments
// (known_arguments.h), so few kernels could share them, and a module for each takes longer than one for all.
bool is_of_numbers(const llvm::Function& function) {
    const bool is_of_lanes = function.hasFnAttribute(workgroup::rare_lanes_attribute);  // all arguments are in memory
    const auto is_pointer = [](const auto& value) { return value.getType()->isPtrOrPtrVectorTy(); };
    return (is_of_lanes || llvm::none_of(function.args(), is_pointer)) &&
           llvm::none_of(llvm::instructions(function), [&](const llvm::Instruction& instruction) {
               return llvm::isa<llvm::LoadInst, llvm::CallInst>(instruction) && is_pointer(instruction);
           });
}

// Whether all uses of the function are calls, of which one is in code that is not cold.
bool is_called_from_outside(const llvm::Function& function) {
    bool found = false;
    for (const llvm::Use& use : function.uses()) {
        const auto* const call = llvm::dyn_cast<llvm::CallInst>(use.getUser());
        if (call == nullptr || !call->isCallee(&use))
            return false;
        found |= !is_cold(*call->getFunction());
    }
    return found;
}

// A module of the tree alone, without what names the program.
std::unique_ptr<llvm::Module> copy_of(const llvm::Module& module, const Tree& tree) {
    llvm::ValueToValueMapTy copies;
    auto copy = llvm::CloneModule(module, copies, [&](const llvm::GlobalValue* value) { return tree.contains(value); });
    copy->setModuleIdentifier("cold");
    copy->setSourceFileName("");
    for (llvm::NamedMDNode& node : llvm::make_early_inc_range(copy->named_metadata()))
        if (node.getName() != "llvm.module.flags")
            node.eraseFromParent();
    for (llvm::Function& function : llvm::make_early_inc_range(*copy))
        if (function.isDeclaration() && function.use_empty())
            function.eraseFromParent();
    for (llvm::GlobalVariable& variable : llvm::make_early_inc_range(copy->globals()))
        if (variable.isDeclaration() && variable.use_empty())
            variable.eraseFromParent();
    return copy;
}

class KnownFunctions {
public:
    // Leaked: kernels may be compiled while the process exits.
    static KnownFunctions& get() {
        static auto* const instance = new KnownFunctions;
        return *instance;
    }

    std::optional<ColdFunction> find(const std::string& key) POLDER_EXCLUDES(mutex_) {
        {
            const Lock lock(mutex_);
            if (const auto found = functions_.find(key); found != functions_.end())
                return found->second;
        }
        const auto bytes = load_cached(key);
        std::optional<ColdFunction> kept = bytes ? from_bytes<ColdFunction>(*bytes) : std::nullopt;
        if (kept)
            add(key, *kept);
        return kept;
    }

    void add(const std::string& key, const ColdFunction& function) POLDER_EXCLUDES(mutex_) {
        const Lock lock(mutex_);
        functions_.try_emplace(key, function);
    }

    Result<std::shared_ptr<const LoadedObject>> load(const ColdFunction& function) POLDER_EXCLUDES(mutex_) {
        const Lock lock(mutex_);
        std::weak_ptr<const LoadedObject>& known = loaded_[function.symbol];
        if (auto object = known.lock())
            return object;
        POLDER_ASSIGN(made, load_object(function.object, function.symbol));
        std::shared_ptr<const LoadedObject> object = std::move(made);
        known = object;
        return object;
    }

private:
    Mutex mutex_;
    std::map<std::string, ColdFunction> functions_ POLDER_GUARDED_BY(mutex_);
    std::map<std::string, std::weak_ptr<const LoadedObject>> loaded_ POLDER_GUARDED_BY(mutex_);
};

std::string text_of(const llvm::Module& module) {
    std::string text;
    llvm::raw_string_ostream out(text);
    module.print(out, nullptr);
    return text;
}

Result<ColdFunction> code_of(llvm::Module& copy, llvm::Function& root, std::string_view variant,
                             const MakeColdFunction& make) {
    root.setName("polder_cold");
    const std::string key = cache_key({"cold function", text_of(copy), variant});
    if (auto known = KnownFunctions::get().find(key))
        return std::move(*known);
    root.setLinkage(llvm::GlobalValue::ExternalLinkage);
    root.setName("polder_cold_" + key);
    POLDER_ASSIGN(made, make(copy));
    made.symbol = "polder_cold_" + key;
    KnownFunctions::get().add(key, made);
    store_cached(key, to_bytes(made));
    return made;
}

// Makes the function a declaration of `symbol`, or takes the one that the module has already.
void declare(llvm::Function& function, const std::string& symbol) {
    if (llvm::Function* const same = function.getParent()->getFunction(symbol)) {
        function.replaceAllUsesWith(same);
        function.eraseFromParent();
        return;
    }
    function.deleteBody();
    function.setName(symbol);
    function.setDSOLocal(true);
}

void remove_unused(llvm::Module& module) {
    for (bool again = true; again;) {
        again = false;
        for (llvm::Function& function : llvm::make_early_inc_range(module))
            if (function.hasLocalLinkage() && function.use_empty()) {
                function.eraseFromParent();
                again = true;
            }
    }
}

}  // namespace

Result<std::vector<ColdFunction>> separate_cold_functions(llvm::Module& module, std::string_view variant,
                                                          const MakeColdFunction& make) {
    std::vector<llvm::Function*> roots;
    for (llvm::Function& function : module)
        if (is_cold(function) && is_of_numbers(function) && is_called_from_outside(function))
            roots.push_back(&function);
    std::vector<ColdFunction> all;
    std::vector<llvm::Function*> separated;
    for (llvm::Function* const function : roots) {
        const Tree tree(*function);
        if (!tree.is_built_in())
            continue;
        const auto copy = copy_of(module, tree);
        POLDER_ASSIGN(made, code_of(*copy, *copy->getFunction(function->getName()), variant, make));
        all.push_back(std::move(made));
        separated.push_back(function);
    }
    for (size_t i = 0; i < separated.size(); ++i)
        declare(*separated[i], all[i].symbol);
    remove_unused(module);
    return all;
}

Result<std::shared_ptr<const LoadedObject>> load_cold_function(const ColdFunction& function) {
    return KnownFunctions::get().load(function);
}

}  // namespace polder::compiler
