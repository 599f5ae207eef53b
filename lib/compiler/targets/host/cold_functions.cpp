// A function is separated when all that it reaches is built in: functions, intrinsics, constants. Its tree is cloned into a module, whose text is
// hashed. (Bitcode also lists the kinds of metadata that the context knows, which differ between kernels.) The hash is part of the symbol, so code of
// one symbol is the same in all kernels. Text and clone take a twentieth of the time for a small kernel. So the functions of a program are also known by
// their names, together with a hash of LLVM's, which is quick but leaves out flags and attributes.
#include "cold_functions.h"

#include "files/cache.h"
#include "machine/retarget.h"
#include "module/byte_stream.h"
#include "targets/host/workgroup/vectorizer/code/rare_calls.h"

#include <base/mutex.h>
#include <base/scope_exit.h>

#include <chrono>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/StableHashing.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/StructuralHash.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <map>
#include <set>

namespace polder::compiler {
namespace {

constexpr std::string_view symbol_prefix = "polder_cold_";
constexpr std::chrono::seconds making_max{1};  // idle processors need 15 ms

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
    // Of the functions' instructions.
    [[nodiscard]] uint64_t hash() const {
        llvm::stable_hash all = members_.size();
        for (const llvm::GlobalValue* const member : members_)
            if (const auto* const function = llvm::dyn_cast<llvm::Function>(member))
                all = llvm::stable_hash_combine(all, llvm::StructuralHash(*function, true));
        return all;
    }
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

    // Made by `make` if it is neither in memory nor in the disk cache.
    template <class Make>
    Result<ColdFunction> get(const std::string& key, const Make& make) POLDER_EXCLUDES(mutex_) {
        if (auto known = find_or_begin(key))
            return std::move(*known);
        const ScopeExit end([&] { end_making(key); });
        const auto bytes = load_cached(key);
        if (auto kept = bytes ? from_bytes<ColdFunction>(*bytes) : std::nullopt) {
            add(key, *kept);
            return std::move(*kept);
        }
        Result<ColdFunction> made = make();
        if (made) {
            add(key, *made);
            store_cached(key, to_bytes(*made));
        }
        return made;
    }

    std::optional<ColdFunction> find_in_program(const std::string& place) POLDER_EXCLUDES(mutex_) {
        const Lock lock(mutex_);
        const auto found = places_.find(place);
        return found == places_.end() ? std::nullopt : std::optional{functions_.at(found->second)};
    }

    void add_to_program(const std::string& place, const ColdFunction& function) POLDER_EXCLUDES(mutex_) {
        const std::string key = function.symbol.substr(symbol_prefix.size());
        const Lock lock(mutex_);
        if (functions_.contains(key))
            places_.try_emplace(place, key);
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
    // Nothing when the caller has to make the function, and to call `end_making` then.
    std::optional<ColdFunction> find_or_begin(const std::string& key) POLDER_EXCLUDES(mutex_) {
        const auto end = std::chrono::steady_clock::now() + making_max;
        const Lock lock(mutex_);
        while (being_made_.contains(key) && changed_.wait_until(mutex_, end) == std::cv_status::no_timeout)
            ;
        if (const auto found = functions_.find(key); found != functions_.end())
            return found->second;
        being_made_.insert(key);
        return std::nullopt;
    }

    void end_making(const std::string& key) POLDER_EXCLUDES(mutex_) {
        const Lock lock(mutex_);
        being_made_.erase(key);
        changed_.notify_all();
    }

    void add(const std::string& key, const ColdFunction& function) POLDER_EXCLUDES(mutex_) {
        const Lock lock(mutex_);
        functions_.try_emplace(key, function);
    }

    Mutex mutex_;
    ConditionVariable changed_;
    std::set<std::string> being_made_ POLDER_GUARDED_BY(mutex_);
    std::map<std::string, ColdFunction> functions_ POLDER_GUARDED_BY(mutex_);
    std::map<std::string, std::string> places_ POLDER_GUARDED_BY(mutex_);  // in programs, to keys
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
    return KnownFunctions::get().get(key, [&]() -> Result<ColdFunction> {
        const std::string symbol = std::string{symbol_prefix} + key;
        root.setLinkage(llvm::GlobalValue::ExternalLinkage);
        root.setName(symbol);
        POLDER_ASSIGN(made, make(copy));
        made.symbol = symbol;
        return made;
    });
}

// Where a program has a function.
class Place {
public:
    // `program`: a hash of it; empty where there is none.
    Place(std::string_view program, std::string_view variant, const llvm::Function& root, const Tree& tree)
        : name_(program.empty() ? std::string{}
                                : std::string{program} + ' ' + std::string{variant} + ' ' + root.getName().str() + ' ' +
                                      std::to_string(tree.hash())) {}

    [[nodiscard]] std::optional<ColdFunction> find() const {
        return name_.empty() ? std::nullopt : KnownFunctions::get().find_in_program(name_);
    }
    void keep(const ColdFunction& function) const {
        if (!name_.empty())
            KnownFunctions::get().add_to_program(name_, function);
    }

private:
    const std::string name_;
};

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
                                                          const MakeColdFunction& make, std::string_view program) {
    std::vector<llvm::Function*> roots;
    for (llvm::Function& function : module)
        if (is_cold(function) && is_of_numbers(function) && is_called_from_outside(function))
            roots.push_back(&function);
    const std::string hash = roots.empty() || program.empty() ? std::string{} : cache_key({"program", program});
    std::vector<ColdFunction> all;
    std::vector<llvm::Function*> separated;
    for (llvm::Function* const function : roots) {
        const Tree tree(*function);
        if (!tree.is_built_in())
            continue;
        separated.push_back(function);
        const Place place(hash, variant, *function, tree);
        if (auto known = place.find()) {
            all.push_back(std::move(*known));
            continue;
        }
        const auto copy = copy_of(module, tree);
        POLDER_ASSIGN(made, code_of(*copy, *copy->getFunction(function->getName()), variant, make));
        place.keep(made);
        all.push_back(std::move(made));
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
